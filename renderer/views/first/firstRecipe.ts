import type { RecipeInput } from '../../../main/contract/recipe.ts';

/** Small enough for two cores in a minute, long enough for the held-out loss to fall; as `tessera first-run`. */
export const firstRecipe = {
  name: 'first run',
  model: 'bundled',
  dataset: 'bundled',
  evalShare: 0.1,
  packing: { strategy: 'best-fit', budget: 2048 },
  epochs: 2,
  optimizer: { lr: 2e-3 },
  schedule: { kind: 'cosine', warmupSteps: 5 },
} as const satisfies RecipeInput;
