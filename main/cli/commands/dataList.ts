import { defineCommand } from '../command.ts';
import { count } from '../progressBar.ts';

export const command = defineCommand({
  summary: 'List the datasets of the home, newest first',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: async ({ core }) => (await core()).call('datasets:list', {}),
  text: ({ datasets }) =>
    datasets
      .map(({ id, format, rows, tokens }) => `${id}  ${format}  ${count(rows)} rows  ${count(tokens)} tokens`)
      .join('\n') || 'no datasets yet: tessera data import PATH…',
});
