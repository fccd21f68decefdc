import { expect, test } from 'vitest';
import { calibrate, forecast, type MeasuredStep } from '../../../main/core/packing/forecast.ts';
import { planPacking } from '../../../main/core/packing/plan.ts';
import { Random } from '../../../main/core/random.ts';

function measure(count: number, noise: number): MeasuredStep[] {
  const random = new Random(2);
  return Array.from({ length: count }, (_, i) => {
    const bins = 1 + (i % 3);
    const positions = bins * (500 + random.below(500));
    const milliseconds = (bins * 4 + positions * 0.02) * (1 + noise * random.normal());
    return { bins, positions, milliseconds: i === 0 ? milliseconds * 20 : milliseconds };
  });
}

test('costs of a bin and of a position are found again, the slow first step aside', () => {
  const model = calibrate(measure(200, 0.05))!;
  expect(model.millisecondsPerBin).toBeGreaterThan(3);
  expect(model.millisecondsPerBin).toBeLessThan(5);
  expect(model.millisecondsPerPosition).toBeCloseTo(0.02, 2);
  expect(model.relativeError).toBeLessThan(0.03);
});

test('steps of one shape, one step, or none', () => {
  const same = calibrate(Array.from({ length: 5 }, () => ({ bins: 1, positions: 1000, milliseconds: 20 })))!;
  expect(same).toMatchObject({ millisecondsPerBin: 0, millisecondsPerPosition: 0.02, relativeError: 0 });
  expect(calibrate([{ bins: 1, positions: 100, milliseconds: 5 }])?.relativeError).toBe(0.25);
  expect(calibrate([])).toBeUndefined();
});

test('a plan costs what its bins and computed positions cost; ranks share it', () => {
  const model = { millisecondsPerBin: 10, millisecondsPerPosition: 1, relativeError: 0.1, measuredSteps: 9 };
  const lengths = Int32Array.of(3, 5, 2, 9);
  const padded = planPacking({ lengths, budget: 12, strategy: 'padded', gradAccumulation: 2 });
  expect(forecast(padded, model)).toEqual({
    steps: 2,
    tokens: 19,
    fill: 19 / 36,
    seconds: 0.051,
    errorSeconds: 0.0051,
  });
  expect(forecast(padded)).toEqual({ steps: 2, tokens: 19, fill: 19 / 36 });
  const shared = planPacking({ lengths, budget: 12, strategy: 'in-order', ranks: 2 });
  expect(forecast(shared, model).seconds).toBeCloseTo((shared.bins * 10 + 19) / 2000);
});
