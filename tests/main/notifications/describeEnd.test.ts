import { expect, it } from 'vitest';
import type { RunSummary } from '../../../main/contract/runs.ts';
import { describeEnd, isWanted } from '../../../main/notifications/describeEnd.ts';

const run = (more: Partial<RunSummary>): RunSummary => ({
  ...{ id: 'a', name: 'night shift', status: 'completed', steps: 1200, plannedSteps: 1200, createdAtMs: 0 },
  ...{ archived: false, tags: [], elapsedMs: 0 },
  ...more,
});

it('says which run ended, how, and what it learnt', () => {
  expect(describeEnd(run({ firstLoss: 2.5, lastLoss: 1.25 }))).toEqual({
    title: 'night shift is trained',
    body: '1,200 of 1,200 steps. Loss 2.500 to 1.250.',
  });
  expect(describeEnd(run({ status: 'failed', reason: 'step 7: the loss is NaN', steps: 6 }))).toEqual({
    title: 'night shift failed',
    body: 'step 7: the loss is NaN. 6 of 1,200 steps.',
  });
});

it('tells only of what is wanted', () => {
  const quiet = { ended: false, failed: true };
  expect(isWanted(run({}), quiet)).toBe(false);
  expect(isWanted(run({ status: 'stopped' }), quiet)).toBe(false);
  expect(isWanted(run({ status: 'failed' }), quiet)).toBe(true);
  expect(isWanted(run({ status: 'failed' }), { ended: true, failed: false })).toBe(false);
});
