import { resolve } from 'node:path';
import { checkpointOption, readCheckpoint } from '../checkpointOption.ts';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  summary: "Write a run's newest weights as a Hugging Face folder",
  usage: 'RUN DIR [--checkpoint WHICH]',
  options: { checkpoint: checkpointOption },
  numPositionals: [2, 2],
  waiting: 'Writing the model folder',
  run: async ({ positionals: [id = '', folder = ''], options, core }) => {
    const checkpoint = readCheckpoint(options.checkpoint);
    return (await core()).call('runs:export', {
      id,
      folder: resolve(folder),
      ...(checkpoint !== undefined && { checkpoint }),
    });
  },
  text: ({ files }) => files.join('\n'),
});
