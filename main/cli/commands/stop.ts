import { defineCommand } from '../command.ts';
import { runText } from '../runText.ts';

export const command = defineCommand({
  summary: 'Stop a run after its step, saved',
  usage: 'RUN',
  options: {},
  numPositionals: [1, 1],
  run: async ({ positionals, core }) =>
    (await core()).call('runs:command', { id: positionals[0] ?? '', command: 'stop' }),
  text: runText,
});
