import { checkpointOption, readCheckpoint } from '../checkpointOption.ts';
import { defineCommand } from '../command.ts';
import { followRun, notFailed } from '../followRun.ts';
import { runText } from '../runText.ts';

export const command = defineCommand({
  summary:
    'Go on with a paused run, or with an ended one from its newest checkpoint, or without one from the beginning',
  usage: 'RUN [--detach] [--checkpoint WHICH] [--device D]',
  options: {
    detach: { type: 'boolean', help: 'return once it is queued; the core goes on' },
    checkpoint: checkpointOption,
    device: {
      type: 'string',
      value: 'D',
      help: 'go on there instead: cpu, cuda:0 or cuda:0,1; a step keeps its bins',
    },
  },
  numPositionals: [1, 1],
  run: async (invocation) => {
    const core = await invocation.core();
    const from = readCheckpoint(invocation.options.checkpoint);
    const { run } = await core.call('runs:resume', {
      id: invocation.positionals[0] ?? '',
      ...(from !== undefined && { from }),
      ...(invocation.options.device !== undefined && { device: invocation.options.device }),
    });
    if (invocation.options.detach) return { run };
    return { run: await notFailed(core, await followRun(core, run.id, invocation)) };
  },
  text: runText,
});
