import { resolve } from 'node:path';
import { counted } from '../../contract/counted.ts';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Copy what can be read of the history into a new file',
  usage: 'DIR',
  options: {},
  numPositionals: [1, 1],
  waiting: 'Copying the history',
  run: async ({ positionals: [folder = ''], core }) =>
    (await core()).call('system:copy-history', { folder: resolve(folder) }),
  text: ({ path, rows, damagedTables }) =>
    `${path}: ${counted(rows, 'row')}${damagedTables.length === 0 ? '' : `; parts of ${damagedTables.join(', ')} could not be read`}`,
});
