// A home that a newer Tessera wrote is refused before minutes are spent on a set-up that could not open it.
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './paths.mjs';
import { SetupError } from './report.mjs';

/** Where an SQLite file holds its `user_version`: 4 bytes, big-endian. */
const versionAt = 60;

/** @throws {SetupError} naming the history and both versions */
export function refuseNewerHome(home) {
  const file = join(home, 'tessera.sqlite');
  const bytes = Buffer.alloc(4);
  try {
    const handle = openSync(file, 'r');
    readSync(handle, bytes, 0, 4, versionAt);
    closeSync(handle);
  } catch {
    return;
  }
  const found = bytes.readUInt32BE();
  const known = Math.max(
    ...readdirSync(join(root, 'db/migrations')).map((name) => Number(/^(\d{4})-/.exec(name)?.[1] ?? 0)),
  );
  if (found <= known) return;
  throw new SetupError(
    `${file} was written by a newer Tessera (version ${found}, this one knows ${known})`,
    'Update Tessera, or choose another home with --home DIR. Nothing has been changed.',
  );
}

/** The home that a command line names, else the one that the programs take. */
export async function homeOf(args, env = process.env) {
  const at = args.findIndex((arg) => /^--home(=|$)/.test(arg));
  if (at >= 0) return args[at].includes('=') ? args[at].slice('--home='.length) : (args[at + 1] ?? '');
  try {
    const { defaultHome } = await import('../../main/core/homeFolder.ts');
    return defaultHome(env);
  } catch {
    // This Node runs no TypeScript: the core says it later.
    return env.TESSERA_HOME ?? '';
  }
}
