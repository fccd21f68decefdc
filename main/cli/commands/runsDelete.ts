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
    // Which ones `latest` and names meant, before they are gone.
    const shown = await Promise.all(positionals.map((id) => client.call('runs:show', { id })));
    const runs = shown.map(({ run: { id, name } }) => ({ id, name }));
    const ids = runs.map(({ id }) => id);
    const { undo, forever } = options;
    const answer = undo
      ? await client.call('runs:restore', { ids })
      : await client.call('runs:delete', { ids, forever });
    return { ...answer, runs, forever, undo };
  },
  text: ({ runs, forever, undo }) => {
    const names = runs.map(({ id, name }) => `${name} (${id})`).join(', ');
    if (undo) return `brought back ${names}`;
    const ids = runs.map(({ id }) => id).join(' ');
    return `deleted ${names}${forever ? '' : `; for seven days: tessera runs delete ${ids} --undo`}`;
  },
});
