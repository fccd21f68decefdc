import { describe, expect, it } from 'vitest';
import type { RunStep } from '../../../main/contract/runs.ts';
import {
  appendStep,
  emptySeries,
  placeOfStep,
  splice,
  steadyEnd,
  stepAtPlace,
  type LiveSeries,
} from '../../../renderer/views/run/liveSeries.ts';

const step = (number: number, rest: Partial<RunStep> = {}): RunStep => ({
  ...{ step: number, atMs: 0, loss: number / 10, gradNorm: 1, learningRate: 1e-4, supervisedTokens: 10 },
  ...{ realTokens: 200, positions: 256, milliseconds: 50, flops: 4e6 },
  ...{ elapsedMs: number * 60, realTokensTotal: number * 200, flopsTotal: number * 4e6 },
  ...rest,
});
const steps = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => step(from + i));
const columnsOf = ({ x, mean }: LiveSeries) => ({ x: Array.from(x), mean: Array.from(mean) });
const block = (middle: number, value: number): LiveSeries => ({
  ...{ steps: [middle], x: [middle], minimum: [value - 1], maximum: [value + 1], mean: [value] },
  numNonFinite: [0],
});

it('an axis that ends where the pace says stands still while the pace changes a little', () => {
  const ends = [100, 101, 99, 103, 96, 104, 105].reduce<number[]>(
    (found, guess) => [...found, steadyEnd(found.at(-1), guess)],
    [],
  );
  expect(ends.slice(0, 5)).toEqual([103, 103, 103, 103, 103]);
  expect(new Set(ends).size).toBe(2);
  expect(ends.at(-1)).toBeGreaterThanOrEqual(105);
});

describe('steps at the end of a series', () => {
  it('come in their order, and those that are there already are left out', () => {
    const once = appendStep(emptySeries(), 'loss', steps(1, 5));
    const twice = appendStep(once, 'loss', steps(4, 7));
    expect(Array.from(twice.steps)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(Array.from(twice.mean)).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
    expect(appendStep(twice, 'loss', steps(1, 7))).toBe(twice);
  });
  it('never change what a chart was given before, even where two go on from the same series', () => {
    const base = appendStep(emptySeries(), 'loss', steps(1, 3));
    const first = appendStep(base, 'loss', [step(4, { loss: 44 })]);
    const second = appendStep(base, 'loss', [step(4, { loss: 55 }), step(5)]);
    expect(Array.from(base.mean)).toEqual([0.1, 0.2, 0.3]);
    expect(first.mean[3]).toBe(44);
    expect(second.mean[3]).toBe(55);
    let grown = base;
    for (let i = 4; i <= 400; i += 1) grown = appendStep(grown, 'loss', [step(i)]);
    expect(Array.from(grown.steps)).toEqual(Array.from({ length: 400 }, (_, i) => i + 1));
  });
  it('copy nothing while there is room', () => {
    const base = appendStep(emptySeries(), 'loss', steps(1, 100));
    const next = appendStep(base, 'loss', [step(101)]);
    expect((next.mean as Float64Array).buffer).toBe((base.mean as Float64Array).buffer);
  });
  it('that are no number are counted, and no zero', () => {
    const { mean, numNonFinite } = appendStep(emptySeries(), 'loss', [
      step(1),
      step(2, { loss: Number.NaN }),
      step(3, { loss: Infinity }),
    ]);
    expect(Array.from(numNonFinite)).toEqual([0, 1, 1]);
    expect(mean[1]).toBeNaN();
  });
  it('lie on the axis that was asked for, with rates for amounts', () => {
    const of = (metric: Parameters<typeof appendStep>[1], axis: Parameters<typeof appendStep>[3]) =>
      columnsOf(appendStep(emptySeries(), metric, [step(3)], axis));
    expect(of('tokensPerSecond', 'tokens')).toMatchObject({ x: [600], mean: [4000] });
    expect(of('flopsPerSecond', 'elapsed')).toMatchObject({ x: [180], mean: [8e7] });
    expect(of('milliseconds', 'flops')).toMatchObject({ x: [1.2e7], mean: [50] });
    const still = appendStep(emptySeries(), 'tokensPerSecond', [step(1, { milliseconds: 0 })]);
    expect(still.mean[0]).toBe(0);
  });
});

describe('a finer part in a coarse series', () => {
  const coarse = [8, 24, 40, 56].map((middle) => block(middle, middle)).reduce((a, b) => joined(a, b));
  it('takes the place of what it covers', () => {
    const fine = appendStep(emptySeries(), 'loss', steps(20, 41));
    const { steps: places, minimum } = splice(coarse, fine);
    expect(Array.from(places)).toEqual([8, ...steps(20, 41).map((one) => one.step), 56]);
    expect([minimum[0], minimum[minimum.length - 1]]).toEqual([7, 55]);
  });
  it('is nothing where nothing was read', () => {
    expect(splice(coarse, undefined)).toBe(coarse);
    expect(splice(coarse, emptySeries())).toBe(coarse);
  });
});

describe('steps and places on the axis', () => {
  const series = appendStep(emptySeries(), 'loss', steps(1, 10), 'tokens');
  it('lead to each other between the points and beyond them', () => {
    for (const number of [1, 4, 10, 40]) {
      expect(placeOfStep(series, number)).toBeCloseTo(number * 200, 6);
      expect(stepAtPlace(series, number * 200)).toBe(number);
    }
    expect(stepAtPlace(series, -50)).toBe(0);
  });
  it('are the same while nothing is known', () => {
    expect(placeOfStep(emptySeries(), 12)).toBe(12);
    // Over steps the end of a run lies at its last step to the bit, however many there are so far.
    for (let number = 1; number <= 50; number += 1)
      expect(placeOfStep(appendStep(emptySeries(), 'loss', steps(1, number)), 4000)).toBe(4000);
  });
});

function joined(a: LiveSeries, b: LiveSeries): LiveSeries {
  const both = (name: keyof LiveSeries) => [...Array.from(a[name]), ...Array.from(b[name])];
  return {
    ...{ steps: both('steps'), x: both('x'), minimum: both('minimum'), maximum: both('maximum') },
    ...{ mean: both('mean'), numNonFinite: both('numNonFinite') },
  };
}
