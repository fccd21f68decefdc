import { renderLines } from '../../core/datasets/template/renderLines.ts';
import { defineCommand } from '../command.ts';
import { inputLines, printRows, readRenderOptions, renderOptions } from '../renderCommand.ts';

export const command = defineCommand({
  summary: 'Render chats, one JSON object a line on standard input, by a chat template, exactly as they are',
  usage: '--template FILE < CHATS',
  options: {
    ...renderOptions,
    supervision: { type: 'boolean', help: 'Print which characters are learned, too' },
  },
  numPositionals: [0, 0],
  run: async ({ options }): Promise<undefined> => {
    const { supervision, ...rest } = readRenderOptions(options);
    const wanted = options.supervision ? supervision : undefined;
    await printRows(renderLines(inputLines(), { ...rest, supervision: wanted }));
  },
});
