import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Take runs out of the list; nothing is deleted',
  usage: 'RUN… [--undo]',
  options: { undo: { type: 'boolean', help: 'put them back' } },
  numPositionals: [1, Infinity],
  run: async ({ positionals, options, core }) => {
    const client = await core();
    // Which ones `latest` and names meant, before they are out of the list.
    const shown = await Promise.all(positionals.map((id) => client.call('runs:show', { id })));
    const runs = shown.map(({ run: { id, name } }) => ({ id, name }));
    const ids = runs.map(({ id }) => id);
    const answer = await client.call('runs:archive', { ids, archived: !options.undo });
    return { ...answer, runs, undo: options.undo };
  },
  text: ({ runs, undo }) => {
    const names = runs.map(({ id, name }) => `${name} (${id})`).join(', ');
    if (undo) return `${names} ${runs.length === 1 ? 'is' : 'are'} in the list again`;
    const ids = runs.map(({ id }) => id).join(' ');
    return `archived ${names}; in the list again with: tessera runs archive ${ids} --undo`;
  },
});
