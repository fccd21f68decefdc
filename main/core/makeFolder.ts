import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { TesseraError } from '../contract/errors.ts';

/**
 * Makes a folder and what is missing above it. Node's own `recursive` tries forever where the file system says ENOENT
 * below a folder that is there (`/proc` does): here each level is tried once.
 * @throws the system's error of the level that could not be made
 */
export function makeFolder(path: string): void {
  const target = resolve(path);
  if (existsSync(target)) return;
  const parent = dirname(target);
  if (parent !== target) makeFolder(parent);
  try {
    mkdirSync(target);
  } catch (error) {
    // Somebody else made it in between.
    if (!existsSync(target)) throw error;
  }
}

/**
 * A folder that somebody named for what is written into it.
 * @throws {TesseraError} `notWritable`, naming it
 */
export function makeOutputFolder(path: string): void {
  const hint = 'Give a folder that you may write to.';
  try {
    makeFolder(path);
  } catch (error) {
    const why = (error as Error).message;
    throw new TesseraError('notWritable', `the folder ${path} cannot be made: ${why}`, hint);
  }
  if (!statSync(path).isDirectory()) throw new TesseraError('notWritable', `${path} is a file`, hint);
}
