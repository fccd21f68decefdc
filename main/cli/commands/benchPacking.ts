import { measurePacking, packingTable } from '../measurePacking.ts';
import { bundled } from '../../core/bundled.ts';
import { checkRecipe } from '../../core/runs/recipe.ts';
import { defineCommand, numberOption } from '../command.ts';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

const strategies = ['padded', 'sorted', 'in-order', 'best-fit'] as const;

export const command = defineCommand({
  summary: 'Train on the same examples padded, sorted, in order and packed, and measure each',
  usage: '[--dataset ID] [--model DIR] [--budget N] [--examples N] [--epochs N] [--device D]',
  options: {
    dataset: {
      type: 'string',
      value: 'ID',
      help: 'an imported dataset or a path; default: the sample chats',
    },
    model: { type: 'string', value: 'DIR', help: 'a model folder; default: the bundled model' },
    budget: { type: 'string', value: 'N', help: 'tokens in a bin; default 2048' },
    examples: { type: 'string', value: 'N', help: 'how many examples; default 200' },
    epochs: {
      type: 'string',
      value: 'N',
      help: 'how often each is seen; default 1. A GPU warms up in its first steps: let it take a hundred',
    },
    device: { type: 'string', value: 'D', help: 'auto, cpu, cuda:0; default auto' },
  },
  numPositionals: [0, 0],
  run: async (invocation) => {
    const { options } = invocation;
    const recipe = checkRecipe({
      name: 'bench packing',
      model: options.model === undefined ? bundled().model : resolve(options.model),
      dataset: pathOrId(options.dataset) ?? bundled().samples,
      packing: { budget: numberOption('budget', options.budget, { integer: true, min: 2 }) ?? 2048 },
      device: options.device ?? 'auto',
      acceptSlow: true,
    });
    const maxExamples = numberOption('examples', options.examples, { integer: true, min: 1 }) ?? 200;
    const epochs = numberOption('epochs', options.epochs, { integer: true, min: 1 }) ?? 1;
    return { rows: await measurePacking(invocation, recipe, strategies, maxExamples, epochs) };
  },
  text: ({ rows }) => packingTable(rows),
});

function pathOrId(dataset: string | undefined): string | undefined {
  return dataset !== undefined && existsSync(dataset) ? resolve(dataset) : dataset;
}
