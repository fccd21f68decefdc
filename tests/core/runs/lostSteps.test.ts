import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lostEvaluations, lostSamples, lostSteps } from '../../../main/core/runs/lostSteps.ts';

function checkpoint(state: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-checkpoint-'));
  writeFileSync(join(folder, 'state.json'), typeof state === 'string' ? state : JSON.stringify(state));
  return folder;
}
const step = (number: number) => ({
  ...{ event: 'step', step: number, steps: 9, loss: 'NaN', gradNorm: 1, learningRate: 1, atMs: 5.4 },
  ...{ supervisedTokens: 2, realTokens: 3, positions: 4, milliseconds: 10, flops: 5 },
});
const evaluation = (number: number, phase = 'during') => ({
  ...{ event: 'eval', step: number, phase, loss: 2, tokens: 7, best: true },
});

const answer = (number: number, index: number) => ({ event: 'sample', step: number, index, ids: [5, 6] });

it('takes from a checkpoint what a core that died was not told any more', () => {
  const state = {
    recentSteps: [step(1), step(2), { event: 'step', step: 3 }, step(4)],
    recentEvaluations: [evaluation(0, 'before'), evaluation(2), { event: 'eval' }],
    recentSamples: [answer(0, 0), answer(0, 1), answer(2, 0), { event: 'sample', step: 3 }],
  };
  const folder = checkpoint(state);
  // In order, and no further than there is a hole.
  const rows = lostSteps(folder, undefined);
  expect(rows.map((row) => [row.step, row.positionsTotal, row.elapsedMs])).toEqual([
    [1, 4, 10],
    [2, 8, 20],
  ]);
  expect(lostSteps(folder, rows[0]).map((row) => row.step)).toEqual([2]);
  expect(lostEvaluations(folder, [{ step: 0, phase: 'before' }])).toMatchObject([
    { step: 2, loss: 2, best: true },
  ]);
  expect(lostSamples(folder, [{ step: 0, position: 1 }])).toMatchObject([
    { step: 0, index: 0, ids: [5, 6] },
    { step: 2, index: 0 },
  ]);
});

it.each(['{"recentSteps": ', {}, { recentSteps: 3, recentEvaluations: null }])(
  'takes nothing from an older or a damaged one: %j',
  (state) => {
    expect(lostSteps(checkpoint(state), undefined)).toEqual([]);
    expect(lostEvaluations(checkpoint(state), [])).toEqual([]);
    expect(lostSamples(checkpoint(state), [])).toEqual([]);
  },
);
