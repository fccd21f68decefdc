import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Remove a dataset and its tokens; the files that were imported stay',
  usage: 'ID',
  options: {},
  numPositionals: [1, 1],
  waiting: 'Removing',
  run: async ({ core, positionals: [id = ''] }) => {
    const client = await core();
    const { removed } = await client.call('datasets:remove', { id });
    return { ...(await client.call('datasets:list', {})), removed };
  },
  text: ({ removed }) => `removed ${removed.name} (${removed.id})`,
});
