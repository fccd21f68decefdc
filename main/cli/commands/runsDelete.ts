import { defineCommand } from '../command.ts';
import { namedRuns, runNames } from '../namedRuns.ts';
import { program } from '../help.ts';

export const command = defineCommand({
  summary: 'Delete runs; for seven days they can be brought back',
  usage: 'RUN… [--undo | --forever]',
  options: {
    undo: { type: 'boolean', help: 'bring them back' },
    forever: { type: 'boolean', help: 'at once, with their files' },
  },
  numPositionals: [1, Infinity],
  waiting: 'Deleting',
  run: async ({ positionals, options, core }) => {
    const client = await core();
    const runs = await namedRuns(client, positionals);
    const ids = runs.map(({ id }) => id);
    const { undo, forever } = options;
    const answer = undo
      ? await client.call('runs:restore', { ids })
      : await client.call('runs:delete', { ids, forever });
    return { ...answer, runs, forever, undo };
  },
  text: ({ runs, forever, undo }) => {
    if (undo) return `brought back ${runNames(runs)}`;
    const ids = runs.map(({ id }) => id).join(' ');
    return `deleted ${runNames(runs)}${forever ? '' : `; for seven days: ${program} runs delete ${ids} --undo`}`;
  },
});
