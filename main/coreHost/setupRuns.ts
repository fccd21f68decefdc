import type { AppContext } from '../appContext.ts';
import type { CoreClient } from '../contract/index.ts';
import type { RunSummary } from '../contract/runs.ts';
import { nextValue } from '../observable.ts';

const isGoing = ({ status }: RunSummary) =>
  status === 'running' || status === 'paused' || status === 'queued';

/** Keeps account of the runs that are going, tells of those that end, and stops them when asked to. */
export function setupRuns(context: AppContext): void {
  context.core.watch((core) => {
    context.activeRuns.set([]);
    if (core !== undefined) follow(context, core);
  });
  context.stopRuns = () => stopRuns(context);
}

function follow(context: AppContext, core: CoreClient): void {
  const going = new Map<string, RunSummary>();
  const take = (run: RunSummary) => {
    const wasGoing = going.has(run.id);
    if (isGoing(run)) going.set(run.id, run);
    else going.delete(run.id);
    if (wasGoing !== going.has(run.id))
      context.activeRuns.set([...going.values()].map(({ id, name }) => ({ id, name })));
    if (wasGoing && !isGoing(run)) context.endedRuns.emit(run);
  };
  // A lost link is the core state's to tell.
  const read = () =>
    core.call('runs:list', {}).then(
      ({ runs }) => runs.forEach(take),
      () => undefined,
    );
  core
    .subscribe('runs:watch', {}, (updates, numDropped) => {
      if (numDropped > 0) void read();
      for (const update of updates) if (update.kind === 'run') take(update.run);
    })
    .done.catch(() => undefined);
  void read();
}

/** Every run finishes its step and saves; a paused or waiting one ends where it is. Resolves when none is going. */
async function stopRuns(context: AppContext): Promise<void> {
  const core = context.core.get();
  if (core === undefined) return;
  // Last first: a waiting run must not start because the one before it has stopped.
  for (const { id } of context.activeRuns.get().reverse())
    await core.call('runs:command', { id, command: 'stop' });
  await nextValue(context.activeRuns, (runs) => runs.length === 0);
}
