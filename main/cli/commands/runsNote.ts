import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Write the note of a run',
  usage: 'RUN TEXT',
  options: {},
  numPositionals: [2, Infinity],
  run: async ({ positionals: [id = '', ...words], core }) =>
    (await core()).call('runs:note', { id, text: words.join(' ') }),
  text: () => 'noted',
});
