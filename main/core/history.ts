import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { DatabaseFromFutureError, openDatabase, type Db } from '../../db/connection.ts';
import { TesseraError } from '../contract/errors.ts';
import type { HistoryTrouble } from '../contract/system.ts';
import { makeOutputFolder } from './makeFolder.ts';
import { salvage, type Salvaged } from './salvage.ts';
import type { Log } from './log.ts';

/** The database of a home. With `trouble` it is a copy: what is written there is gone with the core. */
export interface History {
  db: Db;
  path: string;
  trouble?: HistoryTrouble;
}

/** Beyond this a file is examined only where the core before this one died. */
const examinedBytes = 256 * 2 ** 20;

/**
 * Opens the history. Where another program holds it, or parts of it are damaged, a copy of it is opened to be read: the
 * file itself is left as it is.
 * @throws {TesseraError} `databaseFromFuture`, or `diskFull`, or `databaseUnreadable` where not even a copy can be read
 */
export async function openHistory(path: string, log: Log, diedBefore: boolean): Promise<History> {
  try {
    const db = await openDatabase(path);
    const isExamined = diedBefore || statSync(path).size <= examinedBytes;
    const [found] = isExamined ? (db.pragma('quick_check(1)') as { quick_check: string }[]) : [];
    if (found === undefined || found.quick_check === 'ok') return { db, path };
    db.close();
    return await openCopy(path, { code: 'historyDamaged', message: found.quick_check }, log);
  } catch (error) {
    if (error instanceof DatabaseFromFutureError)
      throw new TesseraError(
        'databaseFromFuture',
        `${error.path} was written by a newer Tessera (version ${String(error.found)}, this one knows ${String(error.known)})`,
        'Update Tessera, or choose another home (--home DIR). Nothing has been changed.',
      );
    const { code = '', message } = error as { code?: string; message: string };
    if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return openCopy(path, { code: 'historyLocked', message }, log);
    if (code.startsWith('SQLITE_CORRUPT')) return openCopy(path, { code: 'historyDamaged', message }, log);
    if (code.startsWith('SQLITE_')) throw unreadable(path, error as Error);
    throw error;
  }
}

async function openCopy(
  path: string,
  { code, message }: { code: HistoryTrouble['code']; message: string },
  log: Log,
): Promise<History> {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-history-'));
  const copy = join(folder, 'tessera.sqlite');
  for (const part of ['', '-wal']) if (existsSync(path + part)) copyFileSync(path + part, copy + part);
  try {
    const db = await openDatabase(copy);
    const trouble: HistoryTrouble = {
      code,
      message:
        code === 'historyLocked'
          ? `Another program holds the history ${path} (${message}). A copy of it is shown; nothing can be written.`
          : `The history ${path} is damaged (${message}). What can be read of it is shown; nothing can be written.`,
      hint:
        code === 'historyLocked'
          ? 'It opens by itself once the other program lets go of it.'
          : 'Save a copy, or mend it: what can be read moves into a new file, the damaged one is kept beside it.',
    };
    log(`${trouble.message} ${trouble.hint}`);
    return { db, path, trouble };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw unreadable(path, error as Error);
  }
}

/** Whether another program still keeps the file from being written. */
export function isHeld(path: string): boolean {
  const db = new Database(path, { timeout: 0, fileMustExist: true });
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return false;
  } catch (error) {
    return /^SQLITE_(BUSY|LOCKED)/.test((error as { code?: string }).code ?? '');
  } finally {
    db.close();
  }
}

/** SQLite needs this much beside the file to open it at all; it calls a lack of it an error of the disk. */
const roomToOpenBytes = 2 ** 20;

function unreadable(path: string, { code = '', message }: Error & { code?: string }): TesseraError {
  const { bavail, bsize } = statfsSync(dirname(path));
  if (/^SQLITE_(IOERR|FULL)/.test(code) && bavail * bsize < roomToOpenBytes)
    return new TesseraError(
      'diskFull',
      `${path} cannot be opened: its disk is full (${String(bavail * bsize)} bytes are free)`,
      'Free a megabyte or more there and start again; nothing is lost.',
    );
  return new TesseraError(
    'databaseUnreadable',
    `${path} cannot be opened: ${message}`,
    'Move the file aside (a copy may lie beside it) or choose another home (--home DIR).',
  );
}

/** What can be read of the history, as a whole database in a file of its own. @throws {TesseraError} `fileExists` */
export async function copyHistory({ db }: History, target: string): Promise<Salvaged> {
  if (existsSync(target))
    throw new TesseraError('fileExists', `${target} is there already`, 'Give another folder.');
  makeOutputFolder(dirname(target));
  return salvage(db, target);
}

/**
 * Puts what can be read in the damaged file's place and keeps that beside it. The core has to open it anew.
 * @throws {TesseraError} `historyWhole`
 */
export async function mendHistory(history: History): Promise<Salvaged & { aside: string }> {
  const { path, trouble } = history;
  if (trouble?.code !== 'historyDamaged')
    throw new TesseraError('historyWhole', `${path} is not damaged`, 'There is nothing to mend.');
  const mended = `${path}.mended`;
  rmSync(mended, { force: true });
  const salvaged = await salvage(history.db, mended);
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '');
  const aside = `${path}.damaged-${stamp}`;
  for (const part of ['', '-wal', '-shm']) if (existsSync(path + part)) renameSync(path + part, aside + part);
  renameSync(mended, path);
  return { ...salvaged, aside };
}
