import { resolve } from 'node:path';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: "Write a run's newest weights as a Hugging Face folder",
  usage: 'RUN DIR',
  options: {},
  numPositionals: [2, 2],
  run: async ({ positionals: [id = '', folder = ''], core }) =>
    (await core()).call('runs:export', { id, folder: resolve(folder) }),
  text: ({ files }) => files.join('\n'),
});
