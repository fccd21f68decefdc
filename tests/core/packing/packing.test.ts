import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { orderBias } from '../../../main/core/packing/orderBias.ts';
import { planPacking, type PackingOptions, type Plan } from '../../../main/core/packing/plan.ts';
import type { Examples } from '../../../main/core/packing/pieces.ts';
import { packAndSummarise } from '../../../main/core/packing/summary.ts';
import { STRATEGIES, type Strategy } from '../../../main/core/packing/strategies.ts';
import { Random } from '../../../main/core/random.ts';

const strategies = Object.keys(STRATEGIES) as Strategy[];
const bench = Int32Array.from(
  readFileSync('tests/fixtures/bench/chat-lengths-20k.txt', 'utf8').trim().split('\n'),
  Number,
);

/** What must hold of every plan, checked from nothing but its arrays. */
function check(plan: Plan, input: Examples & PackingOptions): void {
  const { example, start, length, positions = length, binOffsets } = plan;
  expect(binOffsets[0]).toBe(0);
  expect(binOffsets.at(-1)).toBe(example.length);
  expect(plan.bins).toBe(binOffsets.length - 1);
  // Only bins that cannot be cut leave ranks without one in the last step.
  if (plan.bins % plan.ranks > 0) {
    const last = plan.binOffsets.subarray(-1 - Math.ceil(plan.bins / plan.epochs));
    expect(last.every((offset, i) => i === 0 || offset - (last[i - 1] ?? 0) === 1)).toBe(true);
  }
  expect(plan.steps).toBe(Math.ceil(plan.bins / plan.ranks / plan.gradAccumulation));
  for (let bin = 0; bin < plan.bins; bin++) {
    const computed = positions.subarray(binOffsets[bin], binOffsets[bin + 1]);
    if (computed.length === 0) throw new Error(`bin ${bin} is empty`);
    if (computed.reduce((a, b) => a + b) > plan.budget) throw new Error(`bin ${bin} is over the budget`);
  }
  // Each piece of each example comes exactly once an epoch; together they are the example, or its beginning.
  const pieces = new Map<number, [number, number][]>();
  example.forEach((e, i) => pieces.set(e, [...(pieces.get(e) ?? []), [start[i]!, length[i]!]]));
  let cutTokens = 0;
  for (const [e, parts] of pieces) {
    parts.sort((a, b) => a[0] - b[0]);
    let at = 0;
    for (let i = 0; i < parts.length; i += plan.epochs) {
      const group = parts.slice(i, i + plan.epochs);
      if (group.some(([s, l]) => s !== at || l !== group[0]![1] || l < 1))
        throw new Error(`example ${e}: ${group.join(' ')}`);
      at += group[0]![1];
    }
    cutTokens += input.lengths[e]! - at;
  }
  expect(cutTokens).toBe(plan.truncated.tokens);
  expect(pieces.size + plan.dropped.overlong + plan.dropped.nothingToLearn).toBe(plan.examples);
  const given = input.lengths.reduce((a, b) => a + b, 0);
  expect(plan.tokens).toBe((given - plan.truncated.tokens - plan.dropped.tokens) * plan.epochs);
  expect(plan.positionsTotal).toBe(positions.reduce((a, b) => a + b, 0));
}

const fibonacci = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181, 6765];
const distributions: Record<string, number[]> = {
  'all one': Array.from({ length: 500 }, () => 1),
  'all the budget': Array.from({ length: 300 }, () => 8192),
  'half and one more': Array.from({ length: 301 }, () => 4097),
  Fibonacci: Array.from({ length: 400 }, (_, i) => fibonacci[i % fibonacci.length]!),
  'one of each': Array.from({ length: 8192 }, (_, i) => i + 1),
  'powers of two': Array.from({ length: 420 }, (_, i) => 2 ** (i % 14)),
  'powers of two and one more': Array.from({ length: 420 }, (_, i) => 2 ** (i % 13) + 1),
  'a third and one more': Array.from({ length: 300 }, () => 2731),
  'two lengths that miss a bin by one': Array.from({ length: 300 }, (_, i) => (i % 2 ? 3000 : 8193 - 3000)),
  ascending: Array.from({ length: 400 }, (_, i) => 1 + 20 * i),
  descending: Array.from({ length: 400 }, (_, i) => 8192 - 20 * i),
  'many short, few long': Array.from({ length: 400 }, (_, i) =>
    Math.min(8192, Math.floor(8192 / (i + 1)) + 16),
  ),
  'two lengths that fill a bin': Array.from({ length: 300 }, (_, i) => (i % 2 ? 8191 : 1)),
  'longer than the budget': Array.from({ length: 200 }, (_, i) => 100 * i + 1),
  'one example': [5],
  'none among some': [0, 5, 0, 9000, 1],
};

describe.each(strategies)('%s', (strategy) => {
  test.each(Object.entries(distributions))('%s', (_name, lengths) => {
    for (const overlong of ['drop', 'truncate', 'split'] as const) {
      const input = { lengths: Int32Array.from(lengths), budget: 8192, strategy, overlong, epochs: 2 };
      const plan = planPacking(input);
      check(plan, input);
      expect(planPacking(input)).toEqual(plan);
    }
  });

  test('random lengths, budgets, ranks, epochs and accumulation', () => {
    const random = new Random(11, strategies.indexOf(strategy));
    for (let round = 0; round < 60; round++) {
      const budget = 2 + random.below(300);
      const lengths = Int32Array.from({ length: 40 + random.below(200) }, () => random.below(2 * budget));
      const input = {
        lengths,
        budget,
        strategy,
        seed: round,
        overlong: random.pick(['drop', 'truncate', 'split'] as const),
        epochs: 1 + random.below(3),
        ranks: 1 + random.below(4),
        gradAccumulation: 1 + random.below(5),
      };
      check(planPacking(input), input);
    }
  });
});

test.each([
  ['padded', 5083, 5083],
  ['in-order', 3101, 3101],
  ['best-fit', 2815, 2857],
  ['ffd', 2815, 2828],
  ['bfd', 2815, 2828],
] as const)('%s packs the 20,000 lengths in %d … %d bins', (strategy, least, most) => {
  for (const seed of [0, 1, 2]) {
    const { bins } = planPacking({ lengths: bench, budget: 8192, strategy, seed });
    expect(bins).toBeGreaterThanOrEqual(least);
    expect(bins).toBeLessThanOrEqual(most);
  }
});

test('best fit chooses the fullest bin that fits, as a plain search does', () => {
  const lengths = Int32Array.from({ length: 600 }, (_, i) => 1 + ((i * 7919) % 97));
  const { example, binOffsets, bins } = planPacking({ lengths, budget: 100, strategy: 'bfd', seed: 4 });
  const left: number[] = [];
  for (const length of [...lengths].sort((a, b) => b - a)) {
    const fitting = left.filter((room) => room >= length);
    const best = fitting.length > 0 ? left.indexOf(Math.min(...fitting)) : left.push(100) - 1;
    left[best]! -= length;
  }
  const used = Array.from({ length: bins }, (_, b) =>
    example.subarray(binOffsets[b], binOffsets[b + 1]).reduce((sum, e) => sum + lengths[e]!, 0),
  );
  expect(used.map((n) => 100 - n).sort()).toEqual(left.sort());
});

test('order bias: shuffled is 0 within noise, sorted is 1, bfd is shown for what it is', () => {
  const bias = (strategy: Strategy) => orderBias(planPacking({ lengths: bench, budget: 8192, strategy }));
  for (const strategy of ['best-fit', 'in-order'] as const) {
    expect(Math.abs(bias(strategy).withinBins)).toBeLessThan(0.03);
    expect(Math.abs(bias(strategy).betweenBins)).toBeLessThan(0.06);
  }
  expect(bias('sorted').withinBins).toBeCloseTo(1, 2);
  expect(bias('sorted').betweenBins).toBeCloseTo(1, 2);
  expect(bias('bfd').withinBins).toBeGreaterThan(0.5);
  expect(Math.abs(bias('bfd').betweenBins)).toBeLessThan(0.06);
  expect(bias('ffd').betweenBins).toBeGreaterThan(0.9);
  expect(orderBias({ length: Int32Array.of(3, 3, 3), binOffsets: Int32Array.of(0, 2, 3) })).toEqual({
    withinBins: 0,
    betweenBins: 0,
  });
});

test.each([
  ['best-fit', /^As good as shuffled/],
  ['in-order', /^As good as shuffled/],
  ['bfd', /^Examples of like length share a bin.*; steps come in no order of length\.$/],
  ['ffd', /^Examples of like length share a bin.* curriculum/],
  ['sorted', /^Each bin holds one length.* curriculum/],
] as const)('what the order of %s means is said from its numbers', (strategy, words) => {
  expect(meaningOf({ lengths: bench, budget: 8192, strategy })).toMatch(words);
});

test('a strategy that keeps the order has the bias of the file', () => {
  const lengths = bench.slice().sort((a, b) => b - a);
  expect(meaningOf({ lengths, budget: 8192, strategy: 'in-order' })).toMatch(/curriculum/);
  // With bins that hold few of them, long examples are filled up with short ones: said, not hidden.
  expect(meaningOf({ lengths: bench, budget: 4096, strategy: 'best-fit' })).toMatch(/^Long examples share/);
});

test('of a few bins nothing is said that chance says too', () => {
  const lengths = Int32Array.of(60, 50, 40, 30);
  expect(meaningOf({ lengths, budget: 64, strategy: 'sorted' })).toMatch(/^Too few bins/);
});

const meaningOf = (input: Examples & PackingOptions) => packAndSummarise(input).summary.orderBias.meaning;

test('order bias of few, large examples: those alone in a bin do not blur it', () => {
  const lengths = Int32Array.from({ length: 400 }, (_, i) => 20 + ((i * 7919) % 360));
  const bias = orderBias(planPacking({ lengths, budget: 512, strategy: 'sorted' }));
  expect(bias.withinBins).toBeGreaterThan(0.99);
});

/** Rank r of a step takes the bins whose number leaves r: each rank has as many where bins can be cut, and none is without work. */
function binsOfRanks({ bins, ranks }: Plan): number[] {
  const counts = Array<number>(ranks).fill(0);
  for (let bin = 0; bin < bins; bin++) counts[bin % ranks]! += 1;
  return counts;
}

describe.each(strategies)('ranks, epochs and accumulation: %s', (strategy) => {
  test.each(Object.entries(distributions).filter(([, lengths]) => lengths.length > 8))(
    '%s',
    (_name, lengths) => {
      const input = {
        lengths: Int32Array.from(lengths).subarray(0, 400),
        budget: 8192,
        strategy,
        epochs: 3,
        seed: 5,
      };
      for (const ranks of [2, 3, 7]) {
        const alone = planPacking(input);
        const canCut = alone.bins < alone.example.length;
        const plan = planPacking({ ...input, ranks, gradAccumulation: 2 });
        check(plan, input);
        const counts = binsOfRanks(plan);
        expect(Math.min(...counts)).toBeGreaterThan(0);
        expect(Math.max(...counts) - Math.min(...counts)).toBe(canCut || plan.bins % ranks === 0 ? 0 : 1);
        expect(plan.steps).toBe(Math.ceil(counts[0]! / 2));
        expect(planPacking({ ...input, ranks, gradAccumulation: 2 })).toEqual(plan);
      }
    },
  );

  test('each epoch holds every example once, in an order of its own where the strategy draws one', () => {
    const lengths = bench.subarray(0, 600);
    const plan = planPacking({ lengths, budget: 8192, strategy, epochs: 3, seed: 9 });
    const epochs = [0, 1, 2].map((epoch) => plan.example.subarray(epoch * 600, (epoch + 1) * 600));
    for (const epoch of epochs) expect([...epoch].sort((a, b) => a - b)).toEqual([...lengths.keys()]);
    const isDrawn = strategy !== 'padded' && strategy !== 'in-order';
    for (const [a, b] of [
      [0, 1],
      [1, 2],
      [0, 2],
    ] as const) {
      if (isDrawn) expect(epochs[a]).not.toEqual(epochs[b]);
      else expect(epochs[a]).toEqual(epochs[b]);
    }
    const other = planPacking({ lengths, budget: 8192, strategy, epochs: 3, seed: 10 });
    if (isDrawn) expect(other.example).not.toEqual(plan.example);
    else expect(other.example).toEqual(plan.example);
  });
});

test('seeds and epochs give other orders, the same seed the same', () => {
  const lengths = bench.subarray(0, 500);
  const plan = (seed: number, epochs = 1) =>
    planPacking({ lengths, budget: 8192, strategy: 'best-fit', seed, epochs });
  expect(plan(1).example).not.toEqual(plan(2).example);
  const two = plan(1, 2);
  expect(two.example.subarray(0, 500)).toEqual(plan(1).example);
  expect(two.example.subarray(500)).not.toEqual(plan(1).example);
});

test('padded rows are computed as long as the longest of their batch', () => {
  const plan = planPacking({ lengths: Int32Array.of(3, 5, 2, 9), budget: 12, strategy: 'padded' });
  expect([...plan.binOffsets]).toEqual([0, 2, 3, 4]);
  expect([...plan.positions!]).toEqual([5, 5, 2, 9]);
  expect(plan.positionsTotal).toBe(21);
});

test('too long: truncated, dropped, or split, in tokens; known chats are never split', () => {
  const lengths = Int32Array.of(7, 5, 3);
  const tokens = (extra: object) =>
    planPacking({ lengths, budget: 5, strategy: 'in-order', ...extra }).tokens;
  expect(tokens({})).toBe(13);
  expect(tokens({ overlong: 'truncate' })).toBe(13);
  expect(tokens({ overlong: 'drop' })).toBe(8);
  expect(tokens({ overlong: 'split' })).toBe(15);
  expect(tokens({ isText: Uint8Array.of(1, 0, 0) })).toBe(15);
  expect(tokens({ isText: Uint8Array.of(0, 1, 1), overlong: 'split' })).toBe(13);
});

test('a split leaves no last piece of one token', () => {
  const plan = planPacking({
    lengths: Int32Array.of(11),
    budget: 5,
    strategy: 'in-order',
    overlong: 'split',
  });
  expect([...plan.length]).toEqual([5, 4, 2]);
  expect([...plan.start]).toEqual([0, 5, 9]);
});

test('an example whose targets are all cut off is dropped and counted; one that keeps some stays', () => {
  const input = {
    lengths: Int32Array.of(13, 4),
    firstTarget: Int32Array.of(10, 1),
    strategy: 'in-order' as const,
  };
  const short = planPacking({ ...input, budget: 8 });
  expect([...short.example]).toEqual([1]);
  expect(short.dropped).toEqual({ overlong: 0, nothingToLearn: 1, tokens: 13 });
  const longer = planPacking({ ...input, budget: 12 });
  expect([...longer.length]).toEqual([12, 4]);
  expect(longer.truncated).toEqual({ examples: 1, tokens: 1 });
});

test('ranks: equal bins on each, none without work', () => {
  const lengths = Int32Array.of(5, 5, 5);
  const plan = planPacking({ lengths, budget: 100, strategy: 'best-fit', ranks: 2 });
  expect([plan.bins, plan.steps]).toEqual([2, 1]);
  expect(planPacking({ lengths, budget: 5, strategy: 'padded', ranks: 3 }).steps).toBe(1);
  for (const strategy of strategies) {
    expect(() => planPacking({ lengths, budget: 100, strategy, ranks: 4 }), strategy).toThrow(
      /cannot be shared by 4 ranks/,
    );
  }
});

test.each([
  [{ budget: 1 }, /the budget is 1 token/],
  [{ budget: 0 }, /the budget is 0 tokens/],
  [{ budget: 2 ** 30 }, /the budget is 1,073,741,824 tokens/],
  [{ strategy: 'worst-fit' as Strategy }, /no packing strategy 'worst-fit'/],
  [{ epochs: 0 }, /epochs is 0/],
  [{ ranks: 1.5 }, /ranks is 1.5/],
  [{ seed: 0.1 }, /the seed is 0.1/],
  [{ lengths: new Int32Array(0) }, /no example to pack/],
  [{ lengths: Int32Array.of(3, -4) }, /example 1 has the length -4/],
  [{ lengths: Int32Array.of(0, 0) }, /no example is left to train on: 2 have nothing to learn/],
  [{ lengths: Int32Array.of(9), overlong: 'drop' as const, budget: 4 }, /1 is longer than the budget of 4/],
  [{ firstTarget: Int32Array.of(3, 4) }, /no example is left to train on/],
  [{ firstTarget: Int32Array.of(-1, 0) }, /no example is left to train on/],
])('refused by name: %j', (change, message) => {
  const input = { lengths: Int32Array.of(3, 4), budget: 8, strategy: 'best-fit' as const, ...change };
  expect(() => planPacking(input)).toThrow(message);
});
