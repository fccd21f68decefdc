import { mkdtempSync } from 'node:fs';
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
  const read = queries.list;
  list = new RunList({
    ...queries,
    list: (ids) => {
      if (ids === undefined) numWholeReads += 1;
      return read(ids);
    },
  });
  for (const [i, id] of ['old', 'middle', 'new'].entries()) queries.insert(run(id, 10 * i));
});
afterEach(() => {
  db.close();
});

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
