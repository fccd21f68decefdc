import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Take runs out of the list; nothing is deleted',
  usage: 'RUN… [--undo]',
  options: { undo: { type: 'boolean', help: 'put them back' } },
  numPositionals: [1, Infinity],
  run: async ({ positionals, options, core }) =>
    (await core()).call('runs:archive', { ids: positionals, archived: !options.undo }),
  text: () => 'done',
});
