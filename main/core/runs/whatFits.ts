import { listed } from '../../contract/counted.ts';
import type { Recipe } from '../../contract/recipe.ts';

/** Half the budget so often is tried: below, hardly a chat is left whole. */
const smallestBudget = 256;

interface Variant {
  recipe: Recipe;
  /** What differs, in a recipe's words. */
  changes: string[];
}

/**
 * The changes of a recipe with which a run fits: the first that does of recomputing what must be, then everything,
 * splitting what must be over ranks, state in bf16, gradients in bf16 by one bin a step, and bins of half the size, twice
 * as many a step. Absent where none does.
 * @param needs bytes that the engine would take for a recipe
 */
export async function whatFits(
  recipe: Recipe,
  { freeBytes, onGpu }: { freeBytes: number; onGpu: boolean },
  needs: (changed: Recipe) => Promise<number>,
): Promise<string | undefined> {
  for (const variant of variants(recipe, onGpu))
    if ((await needs(variant.recipe)) <= freeBytes) return listed(variant.changes);
  return undefined;
}

function* variants(recipe: Recipe, onGpu: boolean): Generator<Variant> {
  let smallest: Variant = { recipe, changes: [] };
  yield* recomputed(smallest);
  if (recipe.sharding !== undefined && recipe.sharding !== 'auto') {
    smallest = { recipe: { ...recipe, sharding: 'auto' }, changes: ['sharding: auto'] };
    yield smallest;
    yield* recomputed(smallest);
  }
  const { optimizer, packing } = recipe;
  if (onGpu && optimizer.mode !== 'bf16sr') {
    smallest = {
      recipe: { ...smallest.recipe, optimizer: { ...optimizer, mode: 'bf16sr' } },
      changes: [...smallest.changes, 'optimizer.mode: bf16sr'],
    };
    yield smallest;
    yield* recomputed(smallest);
  }
  // One bin a step lets gradients be bf16.
  if (onGpu && recipe.gradAccumulation > 1 && optimizer.gradients !== 'fp32') {
    const one = {
      recipe: { ...smallest.recipe, gradAccumulation: 1 },
      changes: [...smallest.changes, 'gradAccumulation: 1'],
    };
    yield one;
    yield* recomputed(one);
  }
  // Sums over bins are fp32.
  if (optimizer.gradients === 'bf16')
    smallest = {
      recipe: { ...smallest.recipe, optimizer: { ...smallest.recipe.optimizer, gradients: 'auto' } },
      changes: [...smallest.changes, 'optimizer.gradients: auto'],
    };
  for (let half = 2; packing.budget / half >= smallestBudget; half *= 2) {
    const budget = Math.floor(packing.budget / half);
    const gradAccumulation = recipe.gradAccumulation * half;
    const bins = [`packing.budget: ${String(budget)}`, `gradAccumulation: ${String(gradAccumulation)}`];
    const halved = {
      recipe: { ...smallest.recipe, gradAccumulation, packing: { ...packing, budget } },
      changes: [...smallest.changes, ...bins],
    };
    yield halved;
    yield* recomputed(halved);
  }
}

function* recomputed({ recipe, changes }: Variant): Generator<Variant> {
  for (const recompute of ['auto', 'full'] as const)
    if (recipe.recompute !== recompute && recipe.recompute !== 'full')
      yield { recipe: { ...recipe, recompute }, changes: [...changes, `recompute: ${recompute}`] };
}
