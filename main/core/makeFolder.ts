import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

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
