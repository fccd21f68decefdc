// Builds the window's code where it changed, and opens the app.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { runNode, runProgram } from './run.mjs';
import { electronProgram } from './setup/electron.mjs';
import { root, stampHolds, writeStamp } from './setup/paths.mjs';
import { say } from './setup/report.mjs';

function fingerprint() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'electron.vite.config.ts')));
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) visit(path);
      else hash.update(`${path}:${statSync(path).mtimeMs}:${statSync(path).size};`);
    }
  };
  visit(join(root, 'main'));
  visit(join(root, 'renderer'));
  return hash.digest('hex');
}

/** @returns {Promise<number>} the exit code; 0 at once where nothing has changed */
export async function buildApp() {
  const wanted = fingerprint();
  if (existsSync(join(root, 'out/renderer/index.html')) && stampHolds('app', wanted)) return 0;
  say('Building the window…');
  const code = await runNode(
    [join(root, 'node_modules/electron-vite/bin/electron-vite.js'), 'build', '--logLevel', 'warn'],
    {
      cwd: root,
      stdio: ['ignore', 2, 2],
    },
  );
  if (code === 0) writeStamp('app', wanted);
  return code;
}

/** How Electron has to be started here: its sandbox helper cannot serve root. */
export function electronEnvironment() {
  return { ...process.env, ...(process.getuid?.() === 0 && { ELECTRON_DISABLE_SANDBOX: '1' }) };
}

export async function startApp(args) {
  const code = await buildApp();
  if (code !== 0) return code;
  const program = electronProgram();
  if (program.includes('.tessera')) {
    say(
      'Running on the older stock Electron 33 from the package registry: Electron’s own download was unreachable at set-up.',
    );
  }
  return runProgram(program, [root, ...args], {
    cwd: process.env.INIT_CWD ?? root,
    env: electronEnvironment(),
  });
}
