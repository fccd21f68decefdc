import { defineCommand } from '../command.ts';
import { runText } from '../runText.ts';

export const command = defineCommand({
  summary: 'Save a checkpoint now',
  usage: 'RUN',
  options: {},
  numPositionals: [1, 1],
  run: async ({ positionals, core }) =>
    (await core()).call('runs:command', { id: positionals[0] ?? '', command: 'checkpoint' }),
  text: runText,
});
