import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import {
  assertIndexed,
  DatabaseFromFutureError,
  loadMigrations,
  migrate,
  openDatabase,
  queryPlan,
} from '../../db/connection.ts';

const file = () => join(mkdtempSync(join(tmpdir(), 'tessera-db-')), 'tessera.sqlite');

describe('openDatabase', () => {
  it('brings a new file to the newest version, once', async () => {
    const path = file();
    const newest = (await loadMigrations()).at(-1)?.version;
    const db = await openDatabase(path);
    expect(db.pragma('user_version', { simple: true })).toBe(newest);
    expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    db.close();
    (await openDatabase(path)).close();
  });

  it('makes every table STRICT', async () => {
    const db = await openDatabase(':memory:');
    const tables = db
      .prepare(
        "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
      )
      .all();
    expect(tables.length).toBeGreaterThan(4);
    for (const table of tables) expect(table).toMatchObject({ strict: 1 });
    db.close();
  });

  it('refuses a database from a newer version and leaves it as it is', async () => {
    const path = file();
    const raw = new Database(path);
    raw.pragma('user_version = 99990');
    raw.close();
    await expect(openDatabase(path)).rejects.toThrow(DatabaseFromFutureError);
    const after = new Database(path);
    expect(after.prepare('SELECT count(*) AS count FROM sqlite_master').get()).toEqual({ count: 0 });
    after.close();
  });
});

describe('migrate', () => {
  it('undoes the whole of a migration that fails, and keeps those before it', () => {
    const db = new Database(':memory:');
    const good = { version: 10, name: 'good', up: () => db.exec('CREATE TABLE a (x INTEGER) STRICT') };
    const bad = {
      version: 20,
      name: 'bad',
      up: () => {
        db.exec('CREATE TABLE b (x INTEGER) STRICT');
        throw new Error('half-way');
      },
    };
    expect(() => {
      migrate(db, [good, bad]);
    }).toThrow('half-way');
    expect(db.pragma('user_version', { simple: true })).toBe(10);
    expect(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()).toEqual([{ name: 'a' }]);
  });

  it('copies the file before rows are moved', () => {
    const path = file();
    const db = new Database(path);
    migrate(db, [
      {
        version: 10,
        name: 'first',
        up: () => db.exec('CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7)'),
      },
    ]);
    migrate(db, [
      { version: 10, name: 'first', up: () => undefined },
      { version: 20, name: 'second', movesData: true, up: () => db.exec('UPDATE a SET x = 8') },
    ]);
    expect(existsSync(`${path}.before-10`)).toBe(true);
    const copy = new Database(`${path}.before-10`);
    expect(copy.prepare('SELECT x FROM a').get()).toEqual({ x: 7 });
    copy.close();
    db.close();
  });

  it('sums the positions of a history that knew no such sum, into the newest step of each run', async () => {
    const path = file();
    const old = await openDatabase(path, { target: 65 });
    old.exec(`INSERT INTO runs (id, name, status, createdAtMs, recipe, hashes, plan, folder, plannedSteps)
      SELECT value, value, 'completed', 0, '{}', '{}', '{}', '', 1 FROM json_each('["a", "b", "none"]');
      INSERT INTO runSteps SELECT runs.id, step.value, 0, 1, 1, 1, 1, 1, 100 * step.value, 1, 1, 1, 1, 1, 1, 1, 1
      FROM runs, json_each('[1, 2, 3]') step WHERE runs.id <> 'none'`);
    old.close();
    const db = await openDatabase(path);
    const sums = db.prepare('SELECT positionsTotal FROM runSteps ORDER BY runId, step').pluck().all();
    expect(sums).toEqual([null, null, 600, null, null, 600]);
    db.close();
  });

  it('copies nothing of a history that begins here', async () => {
    const path = file();
    (await openDatabase(path)).close();
    expect(readdirSync(dirname(path)).filter((name) => name.includes('.before-'))).toEqual([]);
  });
});

describe('query plans', () => {
  it('tells an indexed read from a scan', async () => {
    const db = await openDatabase(':memory:');
    expect(queryPlan(db, 'SELECT * FROM runs WHERE id = ?', ['x'])[0]).toContain('SEARCH');
    expect(() => {
      assertIndexed(db, 'SELECT * FROM runs WHERE notes = ?', ['x']);
    }).toThrow('not served by an index');
    assertIndexed(db, 'SELECT * FROM runs WHERE kind = ? ORDER BY createdAtMs DESC', ['train']);
    db.close();
  });
});
