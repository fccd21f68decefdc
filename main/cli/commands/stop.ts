import { askRun } from '../askRun.ts';
import { defineCommand } from '../command.ts';
import { runText } from '../runText.ts';

export const command = defineCommand({
  summary: 'Stop a run after its step, saved',
  usage: 'RUN',
  options: {},
  numPositionals: [1, 1],
  waiting: 'Finishing the step and saving',
  run: (invocation) => askRun(invocation, 'stop'),
  text: runText,
});
