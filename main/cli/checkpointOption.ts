import type { CheckpointChoice } from '../contract/runs.ts';
import { usage, type Option } from './command.ts';

/** Which of a run's checkpoints a command takes. */
export const checkpointOption: Option & { type: 'string' } = {
  type: 'string',
  value: 'WHICH',
  help: 'newest, best (lowest held-out loss), or the number of a step; default newest',
};

export function readCheckpoint(text: string | undefined): CheckpointChoice | undefined {
  if (text === undefined || text === 'newest' || text === 'best') return text;
  const step = Number(text);
  if (Number.isInteger(step) && step >= 0) return step;
  throw usage(`--checkpoint is newest, best or the number of a step, not '${text}'`);
}
