import { defineCommand } from '../command.ts';
import { namedRuns, runNames } from '../namedRuns.ts';

export const command = defineCommand({
  summary: 'Tag a run',
  usage: 'RUN TAG… [--remove]',
  options: { remove: { type: 'boolean', help: 'take these tags away' } },
  numPositionals: [2, Infinity],
  run: async ({ positionals: [given = '', ...tags], options: { remove }, core }) => {
    const client = await core();
    const runs = await namedRuns(client, [given]);
    const id = runs[0]?.id ?? given;
    const answer = await client.call(remove ? 'runs:untag' : 'runs:tag', { id, tags });
    return { ...answer, runs, tags, removed: remove };
  },
  text: ({ runs, tags, removed }) =>
    `${runNames(runs)} is ${removed ? 'no longer tagged' : 'tagged'} ${tags.join(', ')}`,
});
