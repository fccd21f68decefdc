import { expect, it } from 'vitest';
import type { Recipe } from '../../../main/contract/recipe.ts';
import { checkRecipe } from '../../../main/core/runs/recipe.ts';
import { whatFits } from '../../../main/core/runs/whatFits.ts';

/** Bytes of a run as an engine would plan it: state by the mode, activations by the budget and what is recomputed. */
async function needs(recipe: Recipe): Promise<number> {
  const { optimizer, recompute, packing, gradAccumulation, sharding = 'auto' } = recipe;
  const sums = gradAccumulation > 1 && optimizer.mode === 'bf16sr' ? 200 : 0;
  const state = (optimizer.mode === 'bf16sr' ? 300 : 1000) + sums;
  const kept = { P0: 4, P2: 3, P1: 2, auto: 2, full: 1 }[recompute];
  return Promise.resolve((state + packing.budget * kept) * (sharding === 'optimizer' ? 2 : 1));
}

function told(freeBytes: number, more: object = {}, onGpu = true): Promise<string | undefined> {
  const packing = { budget: 4096 };
  return whatFits(checkRecipe({ model: '/m', dataset: 'd', packing, ...more }), { freeBytes, onGpu }, needs);
}

it('names the first change with which a run fits, the least costly first', async () => {
  expect(await told(9200, { recompute: 'P0' })).toBe('recompute: auto');
  expect(await told(9000)).toBe('recompute: full');
  expect(await told(5000)).toBe('optimizer.mode: bf16sr and recompute: full');
  expect(await told(4596, { recompute: 'full' })).toBe('optimizer.mode: bf16sr');
  expect(await told(2600, { gradAccumulation: 3 })).toBe(
    'optimizer.mode: bf16sr, packing.budget: 2048, gradAccumulation: 6 and recompute: full',
  );
});

it('offers no bf16 state on the CPU, and no sums in bf16', async () => {
  expect(await told(5000, { recompute: 'full' }, false)).toBe('packing.budget: 2048 and gradAccumulation: 2');
  const optimizer = { mode: 'bf16sr', gradients: 'bf16' };
  expect(await told(3000, { optimizer, recompute: 'full' })).toBe(
    'optimizer.gradients: auto, packing.budget: 2048 and gradAccumulation: 2',
  );
});

it('splits over ranks what must be before anything is kept in fewer bits', async () => {
  expect(await told(9200, { sharding: 'optimizer' })).toBe('sharding: auto');
  expect(await told(5000, { sharding: 'optimizer' })).toBe(
    'sharding: auto, optimizer.mode: bf16sr and recompute: full',
  );
});

it('offers one bin a step, of which gradients are bf16', async () => {
  const summed = { optimizer: { mode: 'bf16sr' }, recompute: 'full', gradAccumulation: 2 };
  expect(await told(4450, summed)).toBe('gradAccumulation: 1');
  expect(await told(4450, { ...summed, optimizer: { mode: 'bf16sr', gradients: 'fp32' } })).toBe(
    'packing.budget: 2048 and gradAccumulation: 4',
  );
});

it('says nothing where nothing fits', async () => {
  expect(await told(600)).toBeUndefined();
});
