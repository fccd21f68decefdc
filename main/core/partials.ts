import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Home } from './home.ts';
import type { Log } from './log.ts';
import { makeFolder } from './makeFolder.ts';

const partialName = /\.partial-[0-9a-f]{6}$/;
const notesOf = (home: Home) => join(home.root, 'unfinished');

/**
 * A name beside `target` for what is still being written, noted in the home: a core that is killed over it leaves a
 * folder that only the note finds again. `done` forgets it, once it was renamed or removed.
 */
export function beginPartial(home: Home, target: string): { path: string; done: () => void } {
  const tail = randomBytes(3).toString('hex');
  const path = `${target}.partial-${tail}`;
  const note = join(notesOf(home), tail);
  makeFolder(notesOf(home));
  writeFileSync(note, path);
  return {
    path,
    done: () => {
      rmSync(note, { force: true });
    },
  };
}

/** Removes what cores that were killed left half written, and their notes. Called while no other core works here. */
export function sweepPartials(home: Home, log: Log): void {
  if (!existsSync(notesOf(home))) return;
  for (const name of readdirSync(notesOf(home))) {
    const note = join(notesOf(home), name);
    try {
      const path = readFileSync(note, 'utf8');
      if (partialName.test(path) && existsSync(path)) {
        rmSync(path, { recursive: true });
        log(`${path} was never finished and is removed`);
      }
      rmSync(note);
    } catch (error) {
      log(`what ${note} names could not be removed: ${String(error)}`);
    }
  }
}
