import { defineCommand } from '../command.ts';
import { namedRuns, runNames } from '../namedRuns.ts';

export const command = defineCommand({
  summary: 'Give a run another name',
  usage: 'RUN NAME',
  options: {},
  numPositionals: [2, Infinity],
  run: async ({ positionals: [given = '', ...words], core }) => {
    const client = await core();
    const runs = await namedRuns(client, [given]);
    const name = words.join(' ');
    return { ...(await client.call('runs:rename', { id: runs[0]?.id ?? given, name })), runs, name };
  },
  text: ({ runs, name }) => `${runNames(runs)} is called ${name} now`,
});
