import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { bundled } from '../../core/bundled.ts';
import { checkpointOption, readCheckpoint } from '../checkpointOption.ts';
import { defineCommand, numberOption, usage } from '../command.ts';

export const command = defineCommand({
  summary: 'Answer a prompt with a model folder, or with what a run has made of it',
  usage: 'MODEL|RUN --prompt TEXT [--tokens N] [--temperature T] [--checkpoint WHICH]',
  options: {
    prompt: { type: 'string', help: "the user's words" },
    tokens: { type: 'string', value: 'N', help: 'most tokens of the answer; default 128' },
    temperature: { type: 'string', value: 'T', help: '0 takes the likeliest token each time; default 0' },
    checkpoint: checkpointOption,
    seed: { type: 'string', value: 'N', help: 'of the draws; default 0' },
  },
  numPositionals: [1, 1],
  waiting: 'Answering',
  run: async ({ positionals: [name = ''], options, core }) => {
    if (options.prompt === undefined) throw usage('--prompt TEXT is missing');
    const tokens = numberOption('tokens', options.tokens, { integer: true, min: 1 });
    const temperature = numberOption('temperature', options.temperature, { min: 0 });
    const seed = numberOption('seed', options.seed, { integer: true, min: 0 });
    const checkpoint = readCheckpoint(options.checkpoint);
    const model = name === 'bundled' ? bundled().model : existsSync(name) ? resolve(name) : name;
    return (await core()).call('runs:generate', {
      model,
      prompt: options.prompt,
      ...(tokens !== undefined && { tokens }),
      ...(temperature !== undefined && { temperature }),
      ...(checkpoint !== undefined && { checkpoint }),
      ...(seed !== undefined && { seed }),
    });
  },
  text: ({ text }) => text,
});
