import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { TesseraError } from '../contract/errors.ts';
import type { Home } from './home.ts';

/** Who holds a home. */
export interface Holder {
  pid: number;
  /** Start time of the process as the system tells it; with the pid it names one process for good. */
  startTime: string;
  startedAtMs: number;
}

export interface Lock {
  release: () => void;
}

/**
 * One core per home. The lock is the operating system's own lock on `core.lock` (held through SQLite), so it ends
 * with its process however that dies, and two takers can never both win; the file says who holds it. A holder
 * left behind by a dead process (its pid gone, or given to a process with another start time) is replaced.
 * @throws {TesseraError} `homeInUse`
 */
export function takeLock(home: Home): Lock & { previous: Holder | undefined } {
  const db = new Database(home.lock, { timeout: 0 });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('journal_mode = MEMORY');
    db.exec('BEGIN EXCLUSIVE; CREATE TABLE IF NOT EXISTS holder (body TEXT) STRICT; COMMIT');
  } catch (error) {
    db.close();
    if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY') !== true) throw error;
    throw new TesseraError(
      'homeInUse',
      `another core is working in ${home.root}`,
      'Attach to it (every command does), or choose another home (--home DIR).',
    );
  }
  const row = db.prepare('SELECT body FROM holder').get() as { body: string } | undefined;
  const previous = row === undefined ? undefined : (JSON.parse(row.body) as Holder);
  const self: Holder = {
    pid: process.pid,
    startTime: startTimeOf(process.pid) ?? '',
    startedAtMs: Date.now(),
  };
  db.exec('DELETE FROM holder');
  db.prepare('INSERT INTO holder VALUES (?)').run(JSON.stringify(self));
  return {
    previous,
    release: () => {
      if (!db.open) return;
      db.exec('DELETE FROM holder');
      db.close();
    },
  };
}

/** Whether the process that `holder` names is still that process. */
export function isAlive(holder: Pick<Holder, 'pid' | 'startTime'>): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const startTime = startTimeOf(holder.pid);
  return startTime === undefined || holder.startTime === '' || startTime === holder.startTime;
}

/** Linux: field 22 of /proc/PID/stat (clock ticks since boot). Elsewhere unknown: the pid alone decides. */
export function startTimeOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    // The command's name is in parentheses and may hold spaces; fields count on from state, the third.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
