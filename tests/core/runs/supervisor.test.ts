import { expect, test } from 'vitest';
import { openDatabase } from '../../../db/connection.ts';
import { accountQueries } from '../../../db/queries/accounts.ts';
import { noteQueries } from '../../../db/queries/runNotes.ts';
import { runQueries } from '../../../db/queries/runs.ts';
import { seriesQueries } from '../../../db/queries/series.ts';
import type { RunData } from '../../../main/core/runs/runData.ts';
import { RunSupervisor } from '../../../main/core/runs/supervisor.ts';

test('a run whose data is still made can be stopped, and stays so', async () => {
  const db = await openDatabase(':memory:');
  const runs = runQueries(db);
  const ended = Promise.withResolvers<undefined>();
  const data = Promise.withResolvers<RunData>();
  const supervisor = new RunSupervisor({
    ...{ runs, series: seriesQueries(db), accounts: accountQueries(db), notes: noteQueries(db) },
    log: () => undefined,
    work: {
      begin: () => () => {
        ended.resolve(undefined);
      },
      names: () => [],
    },
    openData: () => data.promise,
    onCompleted: () => undefined,
  });
  runs.insert({
    ...{ id: 'a', name: 'a', kind: 'train', createdAtMs: 1, folder: '/nowhere', plannedSteps: 1 },
    ...{ recipe: JSON.stringify({ model: 'm', dataset: 'd' }), hashes: '{}', plan: '{}', preflight: '{}' },
    codeVersion: '0',
  });
  const row = runs.get('a');
  if (row === undefined) throw new Error('not kept');
  supervisor.enqueue('a');
  await expect(supervisor.command(row, 'pause')).rejects.toThrow('is queued');
  await supervisor.command(row, 'stop');
  expect(runs.get('a')?.status).toBe('stopped');
  data.reject(new Error('what was made is of no use any more'));
  await ended.promise;
  expect(runs.get('a')).toMatchObject({ status: 'stopped', reason: 'stopped before it started' });
  db.close();
});
