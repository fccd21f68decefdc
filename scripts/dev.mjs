// npm run dev: the app on the real core, with the renderer's sources reloaded as they change and the window's own
// process started again when its are. Options after -- go to the app (--home DIR). No display: a virtual one.
import { join } from 'node:path';
import { runNode, runProgram } from './run.mjs';
import { electronProgram } from './setup/electron.mjs';
import { setUp } from './setup/index.mjs';
import { forgetStamp, node24, root } from './setup/paths.mjs';
import { electronEnvironment } from './startApp.mjs';

await setUp(['engine', 'electron']);
// What this builds into out/ is for development: the next start or package builds it anew.
forgetStamp('app');
const args = [
  join(root, 'node_modules/electron-vite/bin/electron-vite.js'),
  'dev',
  '--watch',
  '--',
  ...process.argv.slice(2),
];
const options = {
  cwd: root,
  env: { ...electronEnvironment(), ELECTRON_EXEC_PATH: electronProgram() },
};
const hasDisplay =
  process.platform !== 'linux' || Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY);
process.exitCode = hasDisplay
  ? await runNode(args, options)
  : await runProgram('xvfb-run', ['-a', node24(), ...args], options);
