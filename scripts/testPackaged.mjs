// npm run test:packaged: makes the app folder anew, with the older Electron where there is no other, and tests it.
import { join } from 'node:path';
import { runNode, runProgram } from './run.mjs';
import { electronProgram } from './setup/electron.mjs';
import { setUp } from './setup/index.mjs';
import { node24, root } from './setup/paths.mjs';

await setUp(['engine', 'electron']);
const made = await runNode([join(root, 'scripts/package.mjs'), '--for-tests'], { cwd: root });
if (made === 0) {
  const test = [join(root, 'node_modules/@playwright/test/cli.js'), 'test', 'tests/e2e/packaged.spec.ts'];
  const options = { cwd: root, env: { ...process.env, TESSERA_ELECTRON_PROGRAM: electronProgram() } };
  process.exitCode = process.env.DISPLAY
    ? await runNode(test, options)
    : await runProgram('xvfb-run', ['-a', '-s', '-screen 0 1600x1000x24', node24(), ...test], options);
} else process.exitCode = made;
