import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'better-sqlite3';

export type Db = Database.Database;

/** One file in `migrations/`, named `NNNN-what-it-does.ts`; NNNN becomes the database's `user_version`. */
export interface Migration {
  version: number;
  name: string;
  /** Set where rows are rewritten: the file is copied beside itself before it runs. */
  movesData?: boolean;
  up: (db: Db) => void;
}

/** The database was written by a newer Tessera; nothing in it has been touched. */
export class DatabaseFromFutureError extends Error {
  override name = 'DatabaseFromFutureError';
  readonly path: string;
  readonly found: number;
  readonly known: number;
  constructor(path: string, found: number, known: number) {
    super(`${path} is at version ${String(found)}, this program knows versions up to ${String(known)}`);
    this.path = path;
    this.found = found;
    this.known = known;
  }
}

/** How long another program may hold the file before it counts as locked: at the start, and at a write. */
const openMs = 2000;
const busyMs = 500;

const migrationsFolder = join(import.meta.dirname, 'migrations');
const migrationFile = /^(\d{4})-[a-z0-9-]+\.(ts|js)$/;

/** Reads every migration of the folder, in order. Two files with one number are refused. */
export async function loadMigrations(folder: string = migrationsFolder): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const file of readdirSync(folder).sort()) {
    const version = Number(migrationFile.exec(file)?.[1] ?? NaN);
    if (Number.isNaN(version)) continue;
    if (migrations.at(-1)?.version === version)
      throw new Error(`two migrations are numbered ${String(version)}`);
    const module = (await import(pathToFileURL(join(folder, file)).href)) as Pick<
      Migration,
      'up' | 'movesData'
    >;
    migrations.push({ ...module, version, name: basename(file).replace(/\.(ts|js)$/, '') });
  }
  return migrations;
}

/**
 * Brings the database to the newest version (or to `target`, for tests of one migration), each migration in a
 * transaction of its own, so that an interrupted upgrade continues where it was.
 * @throws {DatabaseFromFutureError} before anything is written
 */
export function migrate(db: Db, migrations: Migration[], target = Infinity): void {
  refuseFuture(db, migrations);
  const version = () => versionOf(db);
  const found = version();
  for (const migration of migrations) {
    if (migration.version <= version() || migration.version > target) continue;
    // Of a history that this call began there is nothing to keep.
    if (migration.movesData === true && found > 0) copyBeside(db);
    db.transaction(() => {
      migration.up(db);
      db.pragma(`user_version = ${String(migration.version)}`);
    }).immediate();
  }
}

const versionOf = (db: Db) => db.pragma('user_version', { simple: true }) as number;

function refuseFuture(db: Db, migrations: Migration[]): void {
  const known = migrations.at(-1)?.version ?? 0;
  if (versionOf(db) > known) throw new DatabaseFromFutureError(db.name, versionOf(db), known);
}

function copyBeside(db: Db): void {
  if (db.memory) return;
  db.pragma('wal_checkpoint(TRUNCATE)');
  const copy = `${db.name}.before-${String(versionOf(db))}`;
  if (!existsSync(copy)) copyFileSync(db.name, copy);
}

/**
 * Opens (or creates) a database and migrates it. Every table is STRICT; times are UTC milliseconds.
 * @param path a file, or `:memory:`
 * @throws {DatabaseFromFutureError} and SQLite's own errors: `SQLITE_BUSY` where another program holds it
 */
export async function openDatabase(path: string, options: { target?: number } = {}): Promise<Db> {
  const migrations = await loadMigrations();
  const db = new Database(path, { timeout: openMs });
  try {
    // Before the journal mode: that is a write too.
    refuseFuture(db, migrations);
    db.pragma('journal_mode = WAL');
    // WAL loses no committed transaction when the process dies; FULL would add a sync to each batch of metrics.
    db.pragma('synchronous = NORMAL');
    db.pragma('foreign_keys = ON');
    // Curves of many runs touch pages all over a large file: mapped, each costs no read and no copy.
    db.pragma('mmap_size = 4294967296');
    db.pragma('cache_size = -65536');
    migrate(db, migrations, options.target);
    // Who holds the write lock of a WAL file keeps no reader out: found here, not at the first write.
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    // From here on the program answers others meanwhile: what cannot be written waits and is tried again.
    db.pragma(`busy_timeout = ${String(busyMs)}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** What SQLite will do for a query, one line a step; tests assert on it. */
export function queryPlan(db: Db, sql: string, parameters: unknown[] = []): string[] {
  const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
  return rows.map((row) => row.detail);
}

/** @throws where the query would read a whole table or sort without an index. */
export function assertIndexed(db: Db, sql: string, parameters: unknown[] = []): void {
  const plan = queryPlan(db, sql, parameters);
  const bad = plan.find((step) => /^SCAN (?!\(|.*USING (COVERING )?INDEX)|USE TEMP B-TREE/.test(step));
  if (bad !== undefined) throw new Error(`not served by an index: ${bad}\n${plan.join('\n')}\n${sql}`);
}
