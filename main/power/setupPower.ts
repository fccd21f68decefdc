import { powerMonitor } from 'electron';
import type { AppContext } from '../appContext.ts';

/**
 * Before the machine sleeps, what trains is saved: a battery may be empty before it wakes. Waking needs nothing done: the
 * links are this machine's own, and the engine leaves the time out and notes on the run's time line that it stood still.
 */
export function setupPower(context: AppContext): void {
  powerMonitor.on('suspend', () => {
    for (const { id } of context.activeRuns.get())
      // One that waits for its turn has nothing to save yet, and says so.
      context.core
        .get()
        ?.call('runs:command', { id, command: 'checkpoint' })
        .catch(() => undefined);
  });
}
