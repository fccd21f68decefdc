import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Delete runs; for seven days they can be brought back',
  usage: 'RUN… [--undo | --forever]',
  options: {
    undo: { type: 'boolean', help: 'bring them back' },
    forever: { type: 'boolean', help: 'at once, with their files' },
  },
  numPositionals: [1, Infinity],
  run: async ({ positionals, options, core }) => {
    const client = await core();
    return options.undo
      ? client.call('runs:restore', { ids: positionals })
      : client.call('runs:delete', { ids: positionals, forever: options.forever });
  },
  text: () => 'done',
});
