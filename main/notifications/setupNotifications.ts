import { BrowserWindow, Notification } from 'electron';
import type { AppContext } from '../appContext.ts';
import type { RunSummary } from '../contract/runs.ts';

/** Says that a run has ended, where nobody is looking at the window; a click shows the run. */
export function setupNotifications(context: AppContext): void {
  // Kept until they are gone: a collected notification loses its click.
  const shown = new Set<Notification>();
  context.endedRuns.listen((run) => {
    if (BrowserWindow.getFocusedWindow() !== null || !Notification.isSupported()) return;
    const notification = new Notification(describeEnd(run));
    shown.add(notification);
    const forget = () => shown.delete(notification);
    notification.on('click', () => {
      forget();
      context.showWindow(`/runs/${run.id}`);
    });
    notification.on('close', forget);
    notification.on('failed', forget);
    notification.show();
  });
}

const loss = (value: number | undefined) => (value === undefined ? undefined : value.toFixed(3));

/** What a person who is elsewhere wants to know: which run, how it ended, and whether it learnt anything. */
export function describeEnd(run: RunSummary): { title: string; body: string } {
  const [before, after] = [loss(run.firstLoss), loss(run.lastLoss)];
  const learnt = before === undefined || after === undefined ? '' : ` Loss ${before} to ${after}.`;
  const steps = `${run.steps.toLocaleString('en-US')} of ${run.plannedSteps.toLocaleString('en-US')} steps.`;
  const titles: Partial<Record<RunSummary['status'], string>> = {
    completed: `${run.name} is trained`,
    stopped: `${run.name} was stopped`,
    failed: `${run.name} failed`,
  };
  const reason = run.status === 'completed' || run.reason === undefined ? '' : `${run.reason}. `;
  return { title: titles[run.status] ?? run.name, body: `${reason}${steps}${learnt}` };
}
