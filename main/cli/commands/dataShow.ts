import { counted } from '../../contract/counted.ts';
import { defineCommand } from '../command.ts';
import { count } from '../progressBar.ts';

export const command = defineCommand({
  summary: 'Show a dataset: counts, lengths, warnings and how it was made',
  usage: 'ID',
  options: {},
  numPositionals: [1, 1],
  waiting: 'Reading the dataset',
  run: async ({ core, positionals: [id = ''], progress }) => {
    const shown = await (await core()).call('datasets:show', { id }, { onProgress: progress.update });
    return { datasets: [{ ...shown.dataset, lengths: shown.lengths }], ...shown };
  },
  text: ({ dataset, lengths, warnings, files, model }) => {
    const most = Math.max(1, ...lengths.histogram.map(([, number]) => number));
    return [
      `${dataset.name} (${dataset.id}), tokens of ${model}`,
      `${counted(dataset.rows, 'row')} (${dataset.format}), ${count(dataset.numSkipped)} skipped, ${counted(dataset.tokens, 'token')}, ` +
        `${count(dataset.supervisedTokens)} to learn`,
      `lengths: ${count(lengths.min)} … ${count(lengths.p50)} (median) … ${count(lengths.p99)} (99 %) … ${count(lengths.max)}`,
      ...lengths.histogram.map(
        ([upTo, number]) =>
          `  ≤ ${count(upTo).padStart(9)} ${'█'.repeat(Math.ceil((40 * number) / most))} ${count(number)}`,
      ),
      ...warnings.map(({ code, count: number }) => `  ${code} × ${count(number)}`),
      ...files.map(({ path }) => path),
    ].join('\n');
  },
});
