// npm run package: the app folder, dist/<platform>-unpacked. With -- --for-tests also where only the older Electron of
// docs/adr/0003 is there; such a folder says on its face that it is no release.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { copyPackages, importedPackages, packageFolders } from './package/packages.mjs';
import { writeLicences } from './package/licences.mjs';
import { runNode } from './run.mjs';
import { electronProgram } from './setup/electron.mjs';
import { setUp } from './setup/index.mjs';
import { hasNvcc } from './setup/native.mjs';
import { engineBinary, node24, root, stateDir } from './setup/paths.mjs';
import { say, SetupError } from './setup/report.mjs';
import { buildApp } from './startApp.mjs';

const isForTests = process.argv.includes('--for-tests');
const stage = join(stateDir, 'package');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

try {
  // A release has code for every GPU that the engine knows, whichever this machine has.
  if (!isForTests && hasNvcc()) {
    process.env.TESSERA_CUDA ??= '1';
    process.env.TESSERA_CUDA_ARCHITECTURES ??= 'all';
  }
  // TESSERA_ENGINE: one built elsewhere.
  await setUp(process.env.TESSERA_ENGINE === undefined ? ['engine', 'electron'] : ['electron']);
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(`${error.message}\n  ${error.hint ?? ''}`);
  process.exitCode = 1;
}

async function main() {
  const electron = electronProgram();
  const isOlder = electron.includes('.tessera');
  if (isOlder && !isForTests) {
    throw new SetupError(
      'Electron 45 could not be downloaded, and a release carries no other.',
      'Run this where github.com can be reached; for a folder to test with: npm run package -- --for-tests',
    );
  }
  if ((await buildApp()) !== 0) return 1;
  rmSync(stage, { recursive: true, force: true });
  stageApp();
  const core = stageCore();
  stagePrograms(process.env.TESSERA_ENGINE ?? engineBinary);
  const renderer = packageFolders(importedPackages([join(root, 'renderer')]));
  const fonts = packageFolders(
    Object.keys(manifest.dependencies).filter((name) => name.startsWith('@fontsource')),
  );
  const node = packageFolders([basename(join(dirname(node24()), '..'))]);
  mkdirSync(join(stage, 'licences'), { recursive: true });
  const numLicences = writeLicences(
    new Map([...core, ...renderer, ...fonts, ...node]),
    join(stage, 'licences/third-party.txt'),
  );
  cpSync(join(root, 'LICENSE'), join(stage, 'licences/tessera.txt'));
  if (isOlder) {
    say('Packaging with the older stock Electron 33, for tests only: not for release.');
    writeFileSync(
      join(stage, 'licences/NOT-FOR-RELEASE.txt'),
      'This folder was made for tests, with an older Electron than Tessera is released with. Do not hand it on.\n',
    );
  }

  const code = await runNode(
    [
      join(root, 'node_modules/electron-builder/cli.js'),
      '--dir',
      '--config',
      join(root, 'electron-builder.yml'),
      ...(isOlder
        ? [`--config.electronDist=${dirname(electron)}`, '--config.electronVersion=33.2.1']
        : [`--config.electronVersion=${manifest.devDependencies.electron}`]),
    ],
    { cwd: root, stdio: ['ignore', 2, 2] },
  );
  if (code !== 0) return code;
  const folder = join(
    root,
    'dist',
    readdirSync(join(root, 'dist')).find((name) => name.endsWith('unpacked')) ?? '',
  );
  say(
    `${folder}: ${Math.round(sizeOf(folder) / 2 ** 20)} MiB, ${numLicences} licences${isOlder ? ', for tests only' : ''}`,
  );
  return 0;
}

/** What Electron itself loads: three built parts and the icons; every package is bundled into them. */
function stageApp() {
  const app = join(stage, 'app');
  cpSync(join(root, 'out'), join(app, 'out'), { recursive: true });
  cpSync(join(root, 'assets/icons'), join(app, 'assets/icons'), { recursive: true });
  const { name, productName, version, description, license } = manifest;
  writeFileSync(
    join(app, 'package.json'),
    JSON.stringify({
      name,
      productName,
      version,
      description,
      license,
      author: 'Tessera',
      type: 'module',
      main: 'out/main/main.js',
    }),
  );
}

/** The core and the command line as they are in the repository, run by Node 24 with the packages that they import. */
function stageCore() {
  const core = join(stage, 'core');
  const parts = ['main/core', 'main/cli', 'main/contract', 'db', 'assets'];
  for (const part of parts) cpSync(join(root, part), join(core, part), { recursive: true });
  writeFileSync(
    join(core, 'package.json'),
    JSON.stringify({ name: manifest.name, version: manifest.version, type: 'module' }),
  );
  const folders = packageFolders(importedPackages(parts.slice(0, 4).map((part) => join(root, part))));
  copyPackages(folders, core);
  return folders;
}

function stagePrograms(engine) {
  const isWindows = process.platform === 'win32';
  const node = join(stage, 'node', isWindows ? 'node.exe' : 'node');
  cpSync(node24(), node, { dereference: true });
  cpSync(engine, join(stage, 'engine', isWindows ? 'tessera-engine.exe' : 'tessera-engine'), {
    dereference: true,
  });
  const command = join(stage, 'bin', isWindows ? 'tessera.cmd' : 'tessera');
  mkdirSync(dirname(command), { recursive: true });
  writeFileSync(
    command,
    isWindows
      ? '@"%~dp0..\\node\\node.exe" "%~dp0..\\core\\main\\cli\\main.ts" %*\r\n'
      : '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec "$here/../node/node" "$here/../core/main/cli/main.ts" "$@"\n',
  );
  if (!isWindows) for (const file of [command, node]) chmodSync(file, 0o755);
}

function sizeOf(folder) {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
