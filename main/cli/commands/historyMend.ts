import { counted } from '../../contract/counted.ts';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: 'Put what can be read of a damaged history in its place; the damaged file is kept',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  waiting: 'Mending the history',
  run: async ({ core }) => (await core()).call('system:mend-history', {}),
  text: ({ rows, aside, damagedTables }) =>
    `${counted(rows, 'row')} kept${damagedTables.length === 0 ? '' : `; parts of ${damagedTables.join(', ')} were lost`}. The damaged file is ${aside}.`,
});
