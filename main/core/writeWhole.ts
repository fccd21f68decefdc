import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { notWritten } from './notWritten.ts';

/**
 * Writes a file that somebody named: whole or not at all, and what had its name stays until then. What is no file of
 * its own (a pipe, `/dev/stdout`) is written as it comes.
 * @throws {TesseraError} `diskFull`, `notWritable`, naming it
 */
export async function writeWhole(file: string, content: string | Uint8Array): Promise<void> {
  const path = resolve(file);
  try {
    const target = targetOf(path);
    if (target === undefined) {
      await writeFile(path, content);
      return;
    }
    const partial = join(dirname(target), `.${randomUUID()}.part`);
    try {
      await writeFile(partial, content);
      await rename(partial, target);
    } catch (error) {
      await rm(partial, { force: true }).catch(() => undefined);
      // The file may be writable where its folder is not.
      if (!isRefusal(error) || !existsSync(target)) throw error;
      await writeFile(target, content);
    }
  } catch (error) {
    throw notWritten(path, error, 'file');
  }
}

/** The file behind a link; undefined where it is something else than a file. */
function targetOf(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return path;
  const real = realpathSync(path);
  return lstatSync(real).isFile() ? real : undefined;
}

const isRefusal = (error: unknown) =>
  ['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '');
