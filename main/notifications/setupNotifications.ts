import { BrowserWindow, Notification } from 'electron';
import type { AppContext } from '../appContext.ts';
import type { RunSummary } from '../contract/runs.ts';
import { settingsSchema } from '../contract/settings.ts';
import { describeEnd, isWanted } from './describeEnd.ts';

/** Says that a run has ended, where nobody is looking at the window; a click shows the run. */
export function setupNotifications(context: AppContext): void {
  // Kept until they are gone: a collected notification loses its click.
  const shown = new Set<Notification>();
  const tell = async (run: RunSummary) => {
    if (BrowserWindow.getFocusedWindow() !== null || !Notification.isSupported()) return;
    const asked = await context.core
      .get()
      ?.call('settings:get', {})
      .catch(() => undefined);
    if (!isWanted(run, (asked?.settings ?? settingsSchema.parse({})).notifications)) return;
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
  };
  context.endedRuns.listen((run) => void tell(run));
}
