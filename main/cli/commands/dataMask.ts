import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { TesseraError } from '../../contract/errors.ts';
import { maskLines } from '../../core/datasets/template/renderLines.ts';
import { readTokenizerFile } from '../../core/datasets/tokenise/tokenizerFile.ts';
import { defineCommand, usage } from '../command.ts';
import { inputLines, printRows, readRenderOptions, renderOptions } from '../renderCommand.ts';

export const command = defineCommand({
  summary: 'Tokens of chats, one JSON object a line on standard input, and which of them are learned',
  usage: '--template FILE --tokenizer DIR < CHATS',
  options: {
    ...renderOptions,
    tokenizer: { type: 'string', value: 'DIR', help: 'A folder with a tokenizer.json' },
  },
  numPositionals: [0, 0],
  run: async ({ options }): Promise<undefined> => {
    const rendering = readRenderOptions(options);
    if (options.tokenizer === undefined) throw usage('--tokenizer DIR is missing');
    const file = join(options.tokenizer, 'tokenizer.json');
    if (!existsSync(file)) {
      throw new TesseraError(
        'noTokenizer',
        `${file} does not exist`,
        'Give the folder of a Hugging Face model.',
      );
    }
    await printRows(maskLines(inputLines(), rendering, readTokenizerFile(file)));
  },
});
