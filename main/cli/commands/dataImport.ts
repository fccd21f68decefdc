import { resolve } from 'node:path';
import { counted } from '../../contract/counted.ts';
import { dataFormatNames } from '../../contract/dataFormats.ts';
import { choiceOption, defineCommand, usage } from '../command.ts';
import { parsePairs, parseValues } from '../pairs.ts';
import { superviseOptions } from '../dataOptions.ts';
import { count } from '../progressBar.ts';

export const command = defineCommand({
  summary: 'Read files or folders of examples into a dataset of tokens',
  usage: 'PATH…',
  options: {
    name: { type: 'string', value: 'NAME', help: 'Name of the dataset; absent: from the first file' },
    format: {
      type: 'string',
      value: 'F',
      help: `What the files are (${dataFormatNames}) or the rows are`,
    },
    model: {
      type: 'string',
      value: 'DIR',
      help: 'Model folder with tokenizer and chat template; absent: the bundled one',
    },
    template: { type: 'string', value: 'NAME', help: 'A named chat template of the model' },
    column: {
      type: 'string',
      multiple: true,
      value: 'KNOWN=OWN',
      help: 'Which column is meant, e.g. prompt=question',
    },
    role: {
      type: 'string',
      multiple: true,
      value: 'OWN=ROLE',
      help: 'Which role is meant, e.g. bot2=assistant',
    },
    'max-field-bytes': { type: 'string', value: 'N', help: 'Largest text that is read, in bytes (4194304)' },
    strict: { type: 'boolean', help: 'Stop at the first row that cannot be used' },
    ...superviseOptions,
  },
  numPositionals: [1, Infinity],
  run: async ({ positionals, options, core, progress, interrupted }) => {
    const turns = choiceOption('supervise', options.supervise, ['assistant', 'last', 'all']) ?? 'assistant';
    const maxFieldBytes = options['max-field-bytes'];
    if (maxFieldBytes !== undefined && !/^[1-9]\d*$/.test(maxFieldBytes)) {
      throw usage(`--max-field-bytes takes a number of bytes, not '${maxFieldBytes}'`);
    }
    const client = await core();
    return client.call(
      'datasets:import',
      {
        // The core has a working folder of its own.
        paths: positionals.map((path) => (path.startsWith('hub:') ? path : resolve(path))),
        ...(options.name !== undefined && { name: options.name }),
        ...(options.format !== undefined && { format: options.format }),
        ...(options.model !== undefined && { model: resolve(options.model) }),
        template: {
          ...(options.template !== undefined && { name: options.template }),
          arguments: parseValues('argument', options.argument),
        },
        columns: parsePairs('column', options.column),
        roles: parsePairs('role', options.role),
        ...(maxFieldBytes !== undefined && { maxFieldBytes: Number(maxFieldBytes) }),
        supervise: { turns, reasoning: !options['no-reasoning'] },
        strict: options.strict,
      },
      { onProgress: progress.update, signal: interrupted() },
    );
  },
  text: ({ dataset, skipped, warnings, detections }) =>
    [
      `${dataset.name} (${dataset.id}): ${counted(dataset.rows, 'row')} kept, ${count(dataset.numSkipped)} skipped, ` +
        `${counted(dataset.tokens, 'token')}, ${count(dataset.supervisedTokens)} of them to learn`,
      ...detections.map(({ format, reason, confidence, count: rows }) => {
        return `  ${counted(rows, 'row')} ${rows === 1 ? 'is' : 'are'} ${format}: ${reason} (${String(Math.round(100 * confidence))} % sure)`;
      }),
      ...skipped
        .slice(0, 20)
        .map(({ file, line, row, reason }) => `  skipped ${file}:${String(line ?? row)}: ${reason}`),
      ...(skipped.length > 20 ? [`  … and ${count(dataset.numSkipped - 20)} more`] : []),
      ...warnings.map(({ code, count: number, firstAt }) => {
        return `  ${code} × ${count(number)}, first at ${firstAt.file}:${String(firstAt.line ?? firstAt.row)}`;
      }),
    ].join('\n'),
});
