import { expect, test } from 'vitest';
import { ladderFigures } from '../../../main/core/bench/ladderFigures.ts';

const step = (milliseconds: number, positions = 100) => ({
  ...{ realTokens: 60, supervisedTokens: 20, positions, milliseconds },
});
const round = (...steps: ReturnType<typeof step>[]) => ({
  ...{ device: 'cpu', fixedShapes: false, recompute: 'P0', steps },
  kernels: [{ operation: 'gated_delta_rule', forward: 'gdn_fwd_chunked_cpu', reason: 'AVX2' }],
});
const rung = (kernels: 'reference' | 'fast', rounds: ReturnType<typeof round>[]) => ({
  ...{ kernels, strategy: 'padded' as const, fill: 0.6, rounds },
});

test('a gain is the median of what each round gave, so that a round that was slow for all says what the others say', () => {
  const slow = [1, 5, 1.1];
  const reference = rung(
    'reference',
    slow.map((by) => round(step(40 * by), step(20 * by))),
  );
  const fast = rung(
    'fast',
    slow.map((by) => round(step(15 * by), step(15 * by))),
  );
  const { rungs, spread } = ladderFigures([reference, fast]);
  expect(rungs[0]).toMatchObject({ factor: 1, factorInAll: 1, steps: 2, tokens: 120, positions: 200 });
  expect(rungs[1]?.factor).toBeCloseTo(2);
  expect(rungs[1]?.stepMilliseconds).toBeCloseTo(16.5);
  expect(rungs[1]?.tokensPerSecond).toBeCloseTo((120 / 33) * 1000);
  expect(rungs[1]).toMatchObject({ deltaRule: 'gdn_fwd_chunked_cpu', builtOn: 'AVX2' });
  expect(spread).toBeCloseTo(4 / 1.1);
});

test('each rung is held against the one before and against the first', () => {
  const rounds = [120, 60, 30].map((milliseconds) => [round(step(milliseconds))]);
  const { rungs } = ladderFigures(rounds.map((one, i) => rung(i === 0 ? 'reference' : 'fast', one)));
  expect(rungs.map(({ factor }) => factor)).toEqual([1, 2, 2]);
  expect(rungs.map(({ factorInAll }) => factorInAll)).toEqual([1, 2, 4]);
});
