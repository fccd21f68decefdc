import { describe, expect, it } from 'vitest';
import { plannedSteps, rateOfStep, ratePlan } from '../../../renderer/views/run/plannedRate.ts';

const plan = { lr: 1e-3, kind: 'cosine', warmupSteps: 10, minLr: 1e-4 } as const;

describe('the planned learning rate', () => {
  it('rises over the warm-up, is whole at its end and falls to the least', () => {
    expect(rateOfStep(plan, 1, 110)).toBeCloseTo(1e-4, 12);
    expect(rateOfStep(plan, 10, 110)).toBeCloseTo(1e-3, 12);
    expect(rateOfStep(plan, 11, 110)).toBeCloseTo(1e-3, 12);
    expect(rateOfStep(plan, 61, 110)).toBeCloseTo(5.5e-4, 12);
    expect(rateOfStep({ ...plan, kind: 'linear' }, 36, 110)).toBeCloseTo(7.75e-4, 12);
    expect(rateOfStep({ ...plan, kind: 'constant' }, 110, 110)).toBe(1e-3);
    expect(rateOfStep({ ...plan, warmupSteps: 0 }, 1, 1)).toBe(1e-3);
  });
  it('is drawn from the newest step to the last, in few points, with its corners', () => {
    const steps = plannedSteps(plan, 1, 100_000);
    expect(steps[0]).toBe(1);
    expect(steps.at(-1)).toBe(100_000);
    expect(steps).toEqual(expect.arrayContaining([10, 11]));
    expect(steps.length).toBeLessThan(130);
    expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
    expect(plannedSteps(plan, 100, 100)).toEqual([]);
  });
  it('is not guessed where a recipe does not say it', () => {
    expect(ratePlan({ optimizer: { lr: 1 } })).toBeUndefined();
    expect(ratePlan({ optimizer: { lr: 1 }, schedule: { ...plan, lr: 5 } })).toEqual({ ...plan, lr: 1 });
  });
});
