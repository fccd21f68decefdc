import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Tag a run',
  usage: 'RUN TAG…',
  options: {},
  numPositionals: [2, Infinity],
  run: async ({ positionals: [id = '', ...tags], core }) => (await core()).call('runs:tag', { id, tags }),
  text: () => 'tagged',
});
