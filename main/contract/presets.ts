import type { RecipeInput } from './recipe.ts';

/** A recipe that comes with the program; the model is the user's to give. */
export interface Preset {
  name: string;
  title: string;
  summary: string;
  recipe: Omit<RecipeInput, 'model'>;
}

export const presets: readonly Preset[] = [
  {
    name: 'ultrachat',
    title: 'Published experiment: UltraChat 200k',
    summary:
      'A Qwen3.5 model folder on hub:HuggingFaceH4/ultrachat_200k: 8,192 tokens, AdamW 1e-5 (0.9, 0.95), no decay, recomputation on',
    recipe: {
      name: 'ultrachat',
      dataset: 'hub:HuggingFaceH4/ultrachat_200k#train_sft',
      packing: { strategy: 'best-fit', budget: 8192 },
      optimizer: { lr: 1e-5, betas: [0.9, 0.95], weightDecay: 0 },
      recompute: 'full',
    },
  },
];
