import { counted } from '../../contract/counted.ts';
import { emphasise } from '../output.ts';
import { defineCommand, numberOption } from '../command.ts';

export const command = defineCommand({
  summary: 'Print rows as the model sees them, with every token and whether it is learned',
  usage: 'ID',
  options: {
    from: { type: 'string', value: 'N', help: 'First row, from 0' },
    count: { type: 'string', value: 'N', help: 'How many (10)' },
  },
  numPositionals: [1, 1],
  waiting: 'Reading the rows',
  run: async ({ core, positionals: [id = ''], options, progress }) => {
    const from = numberOption('from', options.from, { min: 0, integer: true }) ?? 0;
    const count = numberOption('count', options.count, { min: 0, max: 1000, integer: true }) ?? 10;
    return (await core()).call('datasets:rows', { id, from, count }, { onProgress: progress.update });
  },
  text: ({ rows }) =>
    rows
      .map(({ index, file, line, row, tokens }) => {
        // What is learned stands in bold.
        const text = tokens.map((token) => (token.supervised ? emphasise(token.text) : token.text)).join('');
        return `#${String(index)} ${file}:${String(line ?? row)}, ${counted(tokens.length, 'token')}\n${text}`;
      })
      .join('\n\n'),
});
