import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDatabase } from '../../db/connection.ts';
import { runQueries } from '../../db/queries/runs.ts';
import { salvage } from '../../main/core/salvage.ts';

it('what is brought over knows no list that was kept of rows which may be lost', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-salvage-'));
  const source = await openDatabase(join(folder, 'source.sqlite'));
  const runs = runQueries(source);
  runs.insert({
    ...{ id: 'a', name: 'a', kind: 'train', createdAtMs: 1, recipe: '{}', hashes: '{}', plan: '{}' },
    ...{ preflight: null, folder: '', plannedSteps: 9, codeVersion: null },
  });
  runs.addTags('a', ['kept']);
  runs.keepList('mark', () => undefined);
  expect(runs.listMark()).toBe('mark');
  expect(await salvage(source, join(folder, 'target.sqlite'))).toMatchObject({ damagedTables: [] });
  source.close();
  const target = await openDatabase(join(folder, 'target.sqlite'));
  expect(runQueries(target).listMark()).toBeUndefined();
  expect(
    runQueries(target)
      .list()
      .map((row) => [row[0], row.at(-1)]),
  ).toEqual([['a', '["kept"]']]);
  target.close();
  rmSync(folder, { recursive: true });
});
