import { defineCommand } from '../command.ts';
import { namedRuns, runNames } from '../namedRuns.ts';

export const command = defineCommand({
  summary: 'Write the note of a run, in place of the one that it has',
  usage: 'RUN TEXT',
  options: {},
  numPositionals: [2, Infinity],
  run: async ({ positionals: [given = '', ...words], core }) => {
    const client = await core();
    const runs = await namedRuns(client, [given]);
    const text = words.join(' ');
    return { ...(await client.call('runs:note', { id: runs[0]?.id ?? given, text })), runs, text };
  },
  text: ({ runs, text }) => `the note of ${runNames(runs)} ${text === '' ? 'is empty' : `is now: ${text}`}`,
});
