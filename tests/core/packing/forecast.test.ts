import { describe, expect, test } from 'vitest';
import { secondsOf, type Load } from '../../../main/contract/cost.ts';
import { fitNonNegative, predict } from '../../../main/core/packing/fitCosts.ts';
import { calibrate, confirm, loadOf, type MeasuredStep } from '../../../main/core/packing/forecast.ts';
import { measuringPlan, stepsOfPass } from '../../../main/core/packing/measuringPlan.ts';
import { planPacking } from '../../../main/core/packing/plan.ts';
import { STRATEGIES, type Strategy } from '../../../main/core/packing/strategies.ts';
import { Random } from '../../../main/core/random.ts';

const random = new Random(8);
const lengths = Int32Array.from({ length: 300 }, () =>
  Math.min(1000, Math.round(Math.exp(5 + 0.8 * random.normal()))),
);
const plan = planPacking({ lengths, budget: 1024, strategy: 'best-fit' });
const quiet = { fixedShapes: false, accumulates: false };

/** Steps as a machine of known costs takes them, whose noise and rounds' drift are known too. */
function measure(
  passes: number,
  { noise = 0, drift = 0, accumulates = false, seed = 1 } = {},
): MeasuredStep[] {
  const own = new Random(seed);
  const shapes = stepsOfPass(measuringPlan(plan, accumulates));
  return Array.from({ length: passes }).flatMap(() => {
    const slow = 1 + drift * own.normal();
    return shapes.map((shape) => ({
      ...shape,
      milliseconds: truth({ ...shape, steps: 1 }) * slow * (1 + noise * own.normal()),
    }));
  });
}
const truth = ({ steps, bins, positions, tokens, squares }: Load) =>
  5 * steps + 4 * bins + 0.02 * positions + 0.03 * tokens + 0.00002 * squares;

describe('a fit', () => {
  test('finds factors again, and never a negative one', () => {
    const rows = [
      [1, 10, 3],
      [1, 20, 5],
      [1, 5, 40],
      [1, 30, 2],
    ];
    const { factors } = fitNonNegative(
      rows,
      rows.map((row) => predict(row, [7, 0.5, 0])),
    );
    expect(factors[0]).toBeCloseTo(7);
    expect(factors[1]).toBeCloseTo(0.5);
    expect(factors[2]).toBeCloseTo(0);
    const falling = fitNonNegative(
      [
        [1, 1],
        [1, 2],
        [1, 3],
      ],
      [30, 20, 10],
    );
    expect(falling.factors.every((factor) => factor >= 0)).toBe(true);
  });
});

test('a pause of the host among the steps of a device changes neither the forecast nor its error', () => {
  const device = { fixedShapes: true, accumulates: false };
  const steps = measure(5, { noise: 0.01, drift: 0.01 });
  const paused = steps.map((step, i) =>
    i === 11 ? { ...step, milliseconds: step.milliseconds + 400 } : step,
  );
  const [without, withPause] = [calibrate(steps, device), calibrate(paused, device)];
  const seconds = (costs: typeof without) => secondsOf(costs!, loadOf(plan)).seconds;
  expect(seconds(withPause) / seconds(without)).toBeCloseTo(1, 1);
  expect(withPause!.relativeError).toBeLessThan(without!.relativeError + 0.05);
});

describe('a forecast', () => {
  test('foretells each strategy from a few steps of other shapes, padding and long examples apart', () => {
    for (const accumulates of [false, true]) {
      const costs = calibrate(measure(3, { accumulates }), { ...quiet, accumulates })!;
      for (const strategy of Object.keys(STRATEGIES) as Strategy[]) {
        const gradAccumulation = accumulates ? 4 : 1;
        const load = loadOf(planPacking({ lengths, budget: 1024, strategy, gradAccumulation }));
        const { seconds, errorSeconds } = secondsOf(costs, load);
        expect(Math.abs(seconds * 1000 - truth(load)) / truth(load), strategy).toBeLessThan(0.03);
        expect(Math.abs(seconds - truth(load) / 1000)).toBeLessThan(errorSeconds);
      }
    }
  });

  test('is stated as wide as the machine is noisy: nine in ten lie inside', () => {
    const load = loadOf(plan);
    let inside = 0;
    const rounds = 200;
    for (let seed = 0; seed < rounds; seed++) {
      // The run comes later, when the machine has drifted on.
      const later = new Random(seed, 1);
      const took = (truth(load) / 1000) * (1 + 0.12 * later.normal());
      const costs = calibrate(measure(2, { noise: 0.05, drift: 0.12, seed }), quiet)!;
      const { seconds, errorSeconds } = secondsOf(costs, load);
      inside += Number(Math.abs(took - seconds) <= errorSeconds);
    }
    expect(inside / rounds).toBeGreaterThan(0.8);
    const calm = calibrate(measure(3, { noise: 0.01 }), quiet)!;
    const wild = calibrate(measure(3, { noise: 0.2, drift: 0.2 }), quiet)!;
    expect(calm.relativeError).toBeLessThan(0.12);
    expect(wild.relativeError).toBeGreaterThan(2 * calm.relativeError);
    expect(
      calibrate(measure(3, { noise: 0.01 }), { ...quiet, contention: 1 })!.relativeError,
    ).toBeGreaterThan(0.3);
  });

  test('few steps are little known, none not at all', () => {
    expect(calibrate(measure(1).slice(0, 1), quiet)!.relativeError).toBeGreaterThan(0.3);
    expect(calibrate([], quiet)).toBeUndefined();
    expect(calibrate([{ ...measure(1)[0]!, milliseconds: 0 }], quiet)).toBeUndefined();
  });

  test('runs correct it: twice as slow as measured, twice as long forecast, and the error is theirs', () => {
    const costs = calibrate(measure(3), quiet)!;
    const load = loadOf(plan);
    const runs = [2.02, 1.98, 2.0].map((factor) => ({ load, milliseconds: truth(load) * factor }));
    const confirmed = confirm(costs, runs);
    expect(secondsOf(confirmed, load).seconds / (truth(load) / 1000)).toBeCloseTo(2, 1);
    expect(confirmed.relativeError).toBeLessThan(costs.relativeError);
    expect(confirmed.runs).toBe(3);
    const astray = confirm(
      costs,
      [1, 2].map((factor) => ({ load, milliseconds: truth(load) * factor })),
    );
    expect(astray.relativeError).toBeGreaterThan(0.4);
    expect(confirm(costs, runs.slice(0, 1)).relativeError).toBeGreaterThan(confirmed.relativeError);
    expect(confirm(costs, [])).toEqual(costs);
  });

  test('where all bins are computed alike, padding costs as much as tokens; ranks share the bins', () => {
    const steps = measure(3).map((step) => ({ ...step, milliseconds: 50 }));
    const costs = calibrate(steps, { ...quiet, fixedShapes: true })!;
    const load = loadOf(plan);
    expect(secondsOf(costs, load).seconds).toBeCloseTo((plan.bins * 50) / 1000, 1);
    const two = secondsOf(costs, { ...load, ranks: 2 });
    expect(two.seconds).toBeCloseTo(secondsOf(costs, load).seconds / 2);
  });
});

describe('a measuring plan', () => {
  test('differs in all that a step costs, keeps the budget, and names examples of the plan', () => {
    const measuring = measuringPlan(plan, false);
    const known = new Set(plan.example);
    expect([...measuring.example].every((example) => known.has(example))).toBe(true);
    const steps = stepsOfPass(measuring);
    expect(steps.length).toBeGreaterThan(5);
    expect(steps.every(({ positions }) => positions > 0 && positions <= 1024)).toBe(true);
    expect(steps.some(({ positions, tokens }) => positions > 1.1 * tokens)).toBe(true);
    const density = steps.map(({ squares, positions }) => squares / positions);
    expect(Math.max(...density)).toBeGreaterThan(3 * Math.min(...density));
    expect(measuring.binOffsets.at(-1)).toBe(measuring.length.length);
  });

  test('with accumulation, steps of two bins and one of one', () => {
    const bins = stepsOfPass(measuringPlan(plan, true)).map((step) => step.bins);
    expect(new Set(bins)).toEqual(new Set([1, 2]));
  });

  test('for a slow device begins with small steps, however large the budget and long the examples', () => {
    const long = Int32Array.from({ length: 40 }, (_, i) => 30_000 + i);
    const huge = planPacking({ lengths: long, budget: 1_000_000, strategy: 'best-fit' });
    const firstTarget = long.map((length, i) => (i % 2 === 0 ? 1 : length - 1));
    for (const accumulates of [false, true]) {
      const measuring = measuringPlan(huge, accumulates, firstTarget);
      const steps = stepsOfPass(measuring);
      const small = steps.slice(0, measuring.numSmall).map(({ positions, bins }) => positions / bins);
      expect(small).toEqual([128, 512, 2048, 8192, 30_000]);
      measuring.example.forEach((example, i) => {
        const from = measuring.start[i] ?? 0;
        const target = firstTarget[example] ?? 0;
        expect(target > from && target < from + (measuring.length[i] ?? 0)).toBe(true);
      });
    }
    expect(measuringPlan(plan, false, Int32Array.of()).numSmall).toBe(0);
  });

  test('of a single example there is something to measure', () => {
    const one = planPacking({ lengths: Int32Array.of(9), budget: 64, strategy: 'padded' });
    expect(stepsOfPass(measuringPlan(one, false)).length).toBeGreaterThan(0);
    expect(stepsOfPass(measuringPlan(one, true)).length).toBeGreaterThan(0);
  });
});
