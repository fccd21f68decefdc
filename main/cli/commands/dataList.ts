import { defineCommand } from '../command.ts';
import { program } from '../help.ts';
import { count } from '../progressBar.ts';
import { textTable } from '../runText.ts';

export const command = defineCommand({
  summary: 'List the datasets of the home, newest first',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: async ({ core }) => (await core()).call('datasets:list', {}),
  text: ({ datasets, interrupted = [] }) => {
    const rows = datasets.map(({ id, name, format, rows: numRows, tokens, createdAtMs }) => {
      const day = new Date(createdAtMs).toISOString().slice(0, 10);
      return [id, name, format, count(numRows), count(tokens), day];
    });
    return (
      [
        ...(rows.length > 0
          ? [textTable(['id', 'name', 'format', 'rows', 'tokens', 'imported'], rows, [3, 4])]
          : []),
        ...interrupted.map(
          ({ args }) =>
            `interrupted: the import of ${args.paths.join(', ')}; nothing half-written was kept. Import it again.`,
        ),
      ].join('\n') || `no datasets yet: ${program} data import PATH…`
    );
  },
});
