import { defineCommand } from '../command.ts';
import { namedRuns, runNames } from '../namedRuns.ts';
import { program } from '../help.ts';

export const command = defineCommand({
  summary: 'Take runs out of the list; nothing is deleted',
  usage: 'RUN… [--undo]',
  options: { undo: { type: 'boolean', help: 'put them back' } },
  numPositionals: [1, Infinity],
  run: async ({ positionals, options, core }) => {
    const client = await core();
    const runs = await namedRuns(client, positionals);
    const ids = runs.map(({ id }) => id);
    const answer = await client.call('runs:archive', { ids, archived: !options.undo });
    return { ...answer, runs, undo: options.undo };
  },
  text: ({ runs, undo }) => {
    if (undo) return `${runNames(runs)} ${runs.length === 1 ? 'is' : 'are'} in the list again`;
    const ids = runs.map(({ id }) => id).join(' ');
    return `archived ${runNames(runs)}; in the list again with: ${program} runs archive ${ids} --undo`;
  },
});
