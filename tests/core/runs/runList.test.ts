import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase, type Db } from '../../../db/connection.ts';
import { runQueries, type NewRun, type RunQueries } from '../../../db/queries/runs.ts';
import { unpackRows } from '../../../main/contract/rows.ts';
import { RunList, type Shelf } from '../../../main/core/runs/runList.ts';

let path: string;
let db: Db;
let queries: RunQueries;
let list: RunList;
let numWholeReads: number;
beforeEach(async () => {
  path = join(mkdtempSync(join(tmpdir(), 'tessera-list-')), 'tessera.sqlite');
  db = await openDatabase(path);
  queries = runQueries(db);
  numWholeReads = 0;
  list = new RunList(counted());
  for (const [i, id] of ['old', 'middle', 'new'].entries()) queries.insert(run(id, 10 * i));
});
afterEach(() => {
  db.close();
});

function counted(): RunQueries {
  const read = queries.list;
  return {
    ...queries,
    list: (ids) => {
      if (ids === undefined) numWholeReads += 1;
      return read(ids);
    },
  };
}

const run = (id: string, createdAtMs: number): NewRun => ({
  ...{ id, name: id, kind: 'train', createdAtMs, recipe: '{}', hashes: '{}', plan: '{}', preflight: null },
  ...{ folder: '', plannedSteps: 9, codeVersion: null },
});
const shown = (shelf: Shelf = 'all') => unpackRows(list.all(shelf)).map(({ id }) => id);

it('reads again only what changed, and shows it where it belongs', () => {
  expect(shown()).toEqual(['new', 'middle', 'old']);
  queries.update('middle', { status: 'running', steps: 7, lastLoss: 1.5 });
  queries.addTags('middle', ['a', 'b']);
  queries.insert(run('between', 15));
  queries.insert({ ...run('bench', 50), kind: 'benchmark' });
  expect(shown()).toEqual(['new', 'between', 'middle', 'old']);
  expect(unpackRows(list.all('all'))[2]).toMatchObject({ steps: 7, lastLoss: 1.5, tags: ['a', 'b'] });
  queries.removeTags('middle', ['a']);
  expect(unpackRows(list.all('all'))[2]).toMatchObject({ status: 'running', tags: ['b'] });

  queries.update('old', { archivedAtMs: 1 });
  queries.update('new', { deletedAtMs: 1 });
  expect([shown(), shown('archived'), shown('deleted')]).toEqual([
    ['between', 'middle'],
    ['between', 'middle', 'old'],
    ['new'],
  ]);
  expect(
    unpackRows(list.find('archived', { sql: 'steps = ?', parameters: [0] })).map(({ id }) => id),
  ).toEqual(['between', 'old']);
  queries.remove('middle');
  expect(shown()).toEqual(['between']);
  expect(numWholeReads).toBe(1);
});

it('shows what was undone as it was, and what another program wrote', async () => {
  expect(shown()).toHaveLength(3);
  expect(() =>
    db.transaction(() => {
      queries.update('new', { archivedAtMs: 1 });
      throw new Error('undone');
    })(),
  ).toThrow('undone');
  expect(shown()).toHaveLength(3);
  const other = await openDatabase(path);
  runQueries(other).update('old', { archivedAtMs: 1 });
  other.close();
  expect(shown()).toEqual(['new', 'middle']);
});

/** A list as the next core has it, which no watch of an earlier one tells of changes. */
async function nextList(snapshot: string): Promise<RunList> {
  db.close();
  db = await openDatabase(path);
  queries = runQueries(db);
  return new RunList(counted(), snapshot);
}

it('is kept for the next core, which reads no row as long as nothing has changed', async () => {
  const snapshot = `${path}.list`;
  queries.addTags('old', ['a', 'b']);
  queries.update('new', { archivedAtMs: 1, lastLoss: 0.5 });
  list = await nextList(snapshot);
  const asRead = unpackRows(list.all('archived'));
  list.save();
  expect(numWholeReads).toBe(1);

  list = await nextList(snapshot);
  expect(unpackRows(list.all('archived'))).toEqual(asRead);
  expect(numWholeReads).toBe(1);
  // Changed from here on it is patched, and what is kept then is of the new state.
  queries.removeTags('old', ['a']);
  queries.insert(run('newest', 99));
  expect(shown()).toEqual(['newest', 'middle', 'old']);
  list.save();
  list = await nextList(snapshot);
  expect(unpackRows(list.all('all'))[2]).toMatchObject({ id: 'old', tags: ['b'] });
  expect(numWholeReads).toBe(1);
});

it('is patched by what changed since, whoever did it and however the core ended', async () => {
  const snapshot = `${path}.list`;
  list = await nextList(snapshot);
  list.all('all');
  list.save();
  expect(numWholeReads).toBe(1);
  // This one dies without keeping what it did.
  queries.update('middle', { status: 'running', steps: 3 });
  queries.remove('new');
  const other = await openDatabase(path);
  runQueries(other).addTags('old', ['seen']);
  other.close();
  list = await nextList(snapshot);
  expect(unpackRows(list.all('all'))).toMatchObject([
    { id: 'middle', status: 'running', steps: 3 },
    { id: 'old', tags: ['seen'] },
  ]);
  expect(numWholeReads).toBe(1);
});

it('is read anew where what was kept is of another history, or spoiled', async () => {
  const snapshot = `${path}.list`;
  list = await nextList(snapshot);
  list.all('all');
  db.pragma('wal_checkpoint(TRUNCATE)');
  const before = readFileSync(path);
  queries.update('new', { name: 'renamed later' });
  list.save();
  expect(numWholeReads).toBe(1);
  // A copy from before is brought back.
  db.close();
  for (const part of ['-wal', '-shm']) rmSync(path + part, { force: true });
  writeFileSync(path, before);
  db = await openDatabase(path);
  list = await nextList(snapshot);
  expect(unpackRows(list.all('all'))[0]).toMatchObject({ name: 'new' });
  expect(numWholeReads).toBe(2);
  list.save();

  const kept = readFileSync(snapshot);
  for (const spoil of [
    (file: Buffer) => file.subarray(0, file.length / 2),
    (file: Buffer) => (file.writeUInt8(file.readUInt8(file.length - 40) ^ 1, file.length - 40), file),
    () => Buffer.from('no list'),
  ]) {
    writeFileSync(snapshot, spoil(Buffer.from(kept)));
    list = await nextList(snapshot);
    expect(shown()).toEqual(['new', 'middle', 'old']);
  }
  expect(numWholeReads).toBe(5);
});

it('finds without reading the list, and the same with it', () => {
  const early = { sql: 'createdAtMs < ?', parameters: [15] };
  const alone = unpackRows(list.find('all', early));
  expect(numWholeReads).toBe(0);
  expect(alone.map(({ id }) => id)).toEqual(['middle', 'old']);
  list.all('all');
  expect(unpackRows(list.find('all', early))).toEqual(alone);
  queries.update('old', { deletedAtMs: 1 });
  expect(unpackRows(list.find('all', early)).map(({ id }) => id)).toEqual(['middle']);
  expect(unpackRows(list.find('deleted', early)).map(({ id }) => id)).toEqual(['old']);
});
