import { describe, expect, it } from 'vitest';
import { recipeSchema } from '../../../main/contract/recipe.ts';
import { Random } from '../../../main/core/random.ts';
import { planRun, type TokenSource } from '../../../main/core/runs/planRun.ts';

function source(examples: number): TokenSource {
  const random = new Random(1);
  const lengths = Int32Array.from({ length: examples }, () => 5 + random.below(90));
  return {
    folder: '/cache',
    key: 'k',
    datasetHash: 'd',
    lengths,
    firstTarget: lengths.map(() => 2),
    isText: new Uint8Array(examples),
  };
}
const recipe = (fields: object) =>
  recipeSchema.parse({ model: '/m', dataset: 'd', packing: { budget: 128 }, ...fields });

describe('planRun', () => {
  it('trains each example once an epoch and never one that is held out', () => {
    const { train, evaluation, summary } = planRun(recipe({ evalShare: 0.1, epochs: 2 }), source(200));
    const heldOut = new Set(evaluation?.example);
    expect(heldOut.size).toBe(20);
    const times = new Map<number, number>();
    for (const example of train.example) times.set(example, (times.get(example) ?? 0) + 1);
    expect(times.size).toBe(180);
    expect([...times.values()].every((count) => count === 2)).toBe(true);
    expect([...heldOut].some((example) => times.has(example))).toBe(false);
    expect(summary).toMatchObject({ examples: 180, evalExamples: 20, steps: train.steps });
  });

  it('plans exactly the steps that are asked for, over as many epochs as they need', () => {
    for (const [steps, gradAccumulation] of [
      [1, 1],
      [7, 3],
      [500, 2],
    ] as const) {
      const { train } = planRun(recipe({ steps, gradAccumulation }), source(50));
      expect(train.steps).toBe(steps);
      expect(train.bins).toBe(steps * gradAccumulation);
      expect(train.binOffsets.at(-1)).toBe(train.example.length);
      expect(train.tokens).toBe(train.length.reduce((a, b) => a + b, 0));
    }
  });

  it('refuses more steps and epochs than a plan can hold, at once', () => {
    for (const fields of [
      { steps: 1_000_000_000 },
      { epochs: 1_000_000 },
      { steps: 1000, gradAccumulation: Number.MAX_SAFE_INTEGER },
    ])
      expect(() => planRun(recipe(fields), source(50))).toThrow('more than a plan holds');
  });

  it('is the same for the same recipe, another for another seed', () => {
    const hash = (fields: object) => planRun(recipe(fields), source(100)).planHash;
    expect(hash({ evalShare: 0.1 })).toBe(hash({ evalShare: 0.1 }));
    expect(hash({ evalShare: 0.1, seed: 1 })).not.toBe(hash({ evalShare: 0.1 }));
    expect(hash({ packing: { budget: 128, seed: 1 } })).not.toBe(hash({}));
  });

  it('holds out at least one example, and refuses where that would leave none', () => {
    expect(planRun(recipe({ evalShare: 0.001 }), source(10)).summary.evalExamples).toBe(1);
    expect(() => planRun(recipe({ evalShare: 0.1 }), source(1))).toThrow('held out');
  });
});
