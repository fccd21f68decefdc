import { createHash } from 'node:crypto';
import { accessSync, constants, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { TesseraError } from '../contract/errors.ts';
import { platformHome, pointerName } from './homeFolder.ts';
import { makeFolder } from './makeFolder.ts';

/** Where everything that Tessera keeps for a user lives. */
export interface Home {
  root: string;
  database: string;
  lock: string;
  log: string;
  /** Unix socket or named pipe of the core. */
  socket: string;
  runs: string;
  caches: string;
}

/** Chooses the home of the programs started from now on; undefined: the usual one. */
export function setHomePointer(home: string | undefined, env: NodeJS.ProcessEnv = process.env): void {
  const usual = platformHome(env);
  makeFolder(usual);
  if (home === undefined) rmSync(join(usual, pointerName), { force: true });
  else writeFileSync(join(usual, pointerName), JSON.stringify({ home }));
}

/**
 * Makes the folder where it is missing. One folder has one name here, whatever links lead to it.
 * @throws {TesseraError} `homeNotWritable`
 */
export function openHome(path: string): Home {
  try {
    makeFolder(path);
    const root = realpathSync(resolve(path));
    accessSync(root, constants.R_OK | constants.W_OK);
    const runs = join(root, 'runs');
    const caches = join(root, 'caches');
    makeFolder(runs);
    makeFolder(caches);
    return {
      root,
      database: join(root, 'tessera.sqlite'),
      lock: join(root, 'core.lock'),
      log: join(root, 'core.log'),
      socket: socketPath(root),
      runs,
      caches,
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new TesseraError(
      'homeNotWritable',
      `the home folder ${path} cannot be written (${code ?? String(error)})`,
      'Choose another (--home DIR, TESSERA_HOME), or mend its permissions.',
    );
  }
}

// sockaddr_un holds 107 bytes and a terminator on Linux, 103 on macOS.
const maxSocketPathBytes = 100;

function socketPath(root: string): string {
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 24);
  if (process.platform === 'win32') return `\\\\.\\pipe\\tessera-${hash}`;
  const inHome = join(root, 'core.sock');
  if (Buffer.byteLength(inHome) <= maxSocketPathBytes) return inHome;
  const folder = join(tmpdir(), `tessera-${String(userInfo().uid)}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return join(folder, `${hash}.sock`);
}
