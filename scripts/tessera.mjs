// npm run -s tessera -- …: sets up what is missing, then the command-line program.
import { join } from 'node:path';
import { runNode } from './run.mjs';
import { setUp } from './setup/index.mjs';
import { root } from './setup/paths.mjs';

await setUp(['engine']);
process.exitCode = await runNode([join(root, 'main/cli/main.ts'), ...process.argv.slice(2)], {
  // npm moves to the repository; paths on the command line are relative to where it was called.
  cwd: process.env.INIT_CWD ?? process.cwd(),
});
