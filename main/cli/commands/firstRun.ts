import { join } from 'node:path';
import { bundled } from '../../core/bundled.ts';
import { checkRecipe } from '../../core/runs/recipe.ts';
import { writeWhole } from '../../core/writeWhole.ts';
import { defineCommand } from '../command.ts';
import { firstRun } from '../firstRun.ts';
import { program } from '../help.ts';

export const command = defineCommand({
  summary: 'The whole way once: sample chats, packing, preflight, training, comparison, report',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: async (invocation) => {
    const core = await invocation.core();
    const result = await firstRun(invocation, core, checkRecipe({ ...firstRecipe, ...models() }));
    const { html } = await core.call('runs:report', { ids: [result.run.id] });
    const report = join(result.folder, 'report.html');
    await writeWhole(report, html);
    return { ...result, report };
  },
  text: ({ run, report }) =>
    `\nrun     ${run.id}\nreport  ${report}\n\nNext: ${program} runs list, … train RECIPE, … --help`,
});

function models() {
  const { model, samples } = bundled();
  return { model, dataset: samples };
}

/** Small enough for two cores in a minute, long enough for the held-out loss to fall. */
const firstRecipe = {
  name: 'first run',
  evalShare: 0.1,
  packing: { strategy: 'best-fit', budget: 2048 },
  epochs: 2,
  optimizer: { lr: 2e-3 },
  schedule: { kind: 'cosine', warmupSteps: 5 },
};
