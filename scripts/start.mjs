// npm start: opens the app; with no display, or with -- --terminal, does the first-run job in the terminal.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runNode } from './run.mjs';
import { homeOf, refuseNewerHome } from './setup/home.mjs';
import { setUp } from './setup/index.mjs';
import { root } from './setup/paths.mjs';

const args = process.argv.slice(2);
const hasWindow = existsSync(join(root, 'main/main.ts'));
const hasDisplay =
  process.platform !== 'linux' || Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY);

try {
  refuseNewerHome(await homeOf(args));
} catch (error) {
  process.stderr.write(`${error.message}\n${error.hint ?? ''}\n`);
  process.exit(1);
}

if (hasWindow && hasDisplay && !args.includes('--terminal')) {
  await setUp(['engine', 'electron']);
  const { startApp } = await import('./startApp.mjs');
  process.exitCode = await startApp(args);
} else {
  await setUp(['engine']);
  process.exitCode = await runNode(
    [join(root, 'main/cli/main.ts'), 'first-run', ...args.filter((arg) => arg !== '--terminal')],
    {
      cwd: root,
    },
  );
}
