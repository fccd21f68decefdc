import { askRun } from '../askRun.ts';
import { defineCommand } from '../command.ts';
import { runText } from '../runText.ts';

export const command = defineCommand({
  summary: 'Save a checkpoint now',
  usage: 'RUN',
  options: {},
  numPositionals: [1, 1],
  waiting: 'Saving a checkpoint',
  run: (invocation) => askRun(invocation, 'checkpoint'),
  text: runText,
});
