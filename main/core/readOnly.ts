import type { Handlers } from '../contract/channel.ts';
import { TesseraError } from '../contract/errors.ts';
import type { CoreContract } from '../contract/index.ts';
import type { HistoryTrouble } from '../contract/system.ts';

/** What changes the history: refused while a copy of it stands in for it. */
const writing = [
  ...([
    'runs:create',
    'runs:resume',
    'runs:command',
    'runs:tag',
    'runs:untag',
    'runs:rename',
    'runs:note',
    'runs:time-note',
  ] as const),
  ...(['runs:archive', 'runs:delete', 'runs:restore', 'runs:save-search', 'datasets:import'] as const),
  'datasets:remove',
] as const;

/** The handlers, those that write replaced by one that says why they cannot. */
export function readOnlyWhere(
  trouble: HistoryTrouble | undefined,
  handlers: Handlers<CoreContract>,
): Handlers<CoreContract> {
  if (trouble === undefined) return handlers;
  const refuse = () => {
    throw new TesseraError('historyReadOnly', trouble.message, trouble.hint);
  };
  return { ...handlers, ...Object.fromEntries(writing.map((channel) => [channel, refuse])) };
}
