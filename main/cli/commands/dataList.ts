import { counted } from '../../contract/counted.ts';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'List the datasets of the home, newest first',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: async ({ core }) => (await core()).call('datasets:list', {}),
  text: ({ datasets, interrupted = [] }) =>
    [
      ...datasets.map(
        ({ id, format, rows, tokens }) =>
          `${id}  ${format}  ${counted(rows, 'row')}  ${counted(tokens, 'token')}`,
      ),
      ...interrupted.map(
        ({ args }) =>
          `interrupted: the import of ${args.paths.join(', ')}; nothing half-written was kept. Import it again.`,
      ),
    ].join('\n') || 'no datasets yet: tessera data import PATH…',
});
