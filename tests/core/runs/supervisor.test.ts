import { expect, test } from 'vitest';
import { openDatabase } from '../../../db/connection.ts';
import { accountQueries } from '../../../db/queries/accounts.ts';
import { noteQueries } from '../../../db/queries/runNotes.ts';
import { runQueries } from '../../../db/queries/runs.ts';
import { seriesQueries } from '../../../db/queries/series.ts';
import { TesseraError } from '../../../main/contract/errors.ts';
import { describe } from '../../../main/core/runs/describe.ts';
import type { RunData } from '../../../main/core/runs/runData.ts';
import { RunSupervisor } from '../../../main/core/runs/supervisor.ts';

/** A supervisor with the run `a`, whose data is what `data` comes to. */
async function waiting() {
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
    ...{ recipe: JSON.stringify({ model: 'm', dataset: 'd' }), plan: JSON.stringify(plan), preflight: null },
    hashes: JSON.stringify({ recipe: '', dataset: '', cache: '', plan: '', model: '' }),
    codeVersion: '0',
  });
  const row = runs.get('a');
  if (row === undefined) throw new Error('not kept');
  return { db, runs, ended, data, supervisor, row };
}

const plan = {
  ...{ strategy: 'best-fit', budget: 2, bins: 1, steps: 1, tokens: 2, positions: 2, fill: 1 },
  ...{ examples: 1, evalExamples: 0, dropped: { overlong: 0, nothingToLearn: 0 } },
  truncated: { examples: 0, tokens: 0 },
};

test('a run that cannot start keeps why, and the way out', async () => {
  const { db, runs, ended, data, supervisor } = await waiting();
  supervisor.enqueue('a');
  data.reject(new TesseraError('sourceChanged', 'chats.jsonl changed', 'Import it again.'));
  await ended.promise;
  const kept = runs.get('a');
  if (kept === undefined) throw new Error('not kept');
  const parts = { events: runs.events('a'), evaluations: [], timeNotes: [], samples: [] };
  expect(describe(kept, parts)).toMatchObject({
    ...{ status: 'failed', reason: 'chats.jsonl changed', hint: 'Import it again.' },
    events: [{ kind: 'failed', data: { code: 'sourceChanged', hint: 'Import it again.' } }],
  });
  // A failure of which no more is known than its reason has no way out of an earlier one.
  expect(describe({ ...kept, reason: 'the core died' }, parts).hint).toBeUndefined();
  db.close();
});

test('a run whose data is still made can be stopped, and stays so', async () => {
  const { db, runs, ended, data, supervisor, row } = await waiting();
  supervisor.enqueue('a');
  await expect(supervisor.command(row, 'pause')).rejects.toThrow('is queued');
  await supervisor.command(row, 'stop');
  expect(runs.get('a')?.status).toBe('stopped');
  data.reject(new Error('what was made is of no use any more'));
  await ended.promise;
  expect(runs.get('a')).toMatchObject({ status: 'stopped', reason: 'stopped before it started' });
  db.close();
});
