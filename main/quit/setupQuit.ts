import { app, BrowserWindow, dialog } from 'electron';
import type { AppContext } from '../appContext.ts';

/** How long a program without a window stays after its last run, so that the notification's click finds it. */
const lingerMs = 10 * 60_000;

/**
 * Quitting with runs going asks what becomes of them: they can go on in the core, which then ends by itself after
 * them. With none going the core has nothing to stay for once the last window's link is gone.
 */
export function setupQuit(context: AppContext): void {
  let isAsking = false;
  let linger: NodeJS.Timeout | undefined;
  app.on('before-quit', (event) => {
    if (context.isQuitting || context.activeRuns.get().length === 0) {
      context.isQuitting = true;
      return;
    }
    event.preventDefault();
    if (isAsking) return;
    isAsking = true;
    void decide(context)
      .then((decision) => {
        if (decision === 'stay') return;
        context.isQuitting = true;
        app.quit();
      })
      .finally(() => {
        isAsking = false;
      });
  });
  // The system ends, or somebody at a terminal does: no time for questions. The core saves by itself or goes on.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      context.isQuitting = true;
      app.quit();
    });
  }
  context.activeRuns.watch((runs) => {
    clearTimeout(linger);
    if (runs.length > 0) return;
    linger = setTimeout(() => {
      if (BrowserWindow.getAllWindows().length === 0) app.quit();
    }, lingerMs);
  });
}

async function decide(context: AppContext): Promise<'quit' | 'stay'> {
  if (process.env.TESSERA_NO_DIALOGS === '1') return 'quit';
  const answer = await ask(context.activeRuns.get().map((run) => run.name));
  if (answer === 'cancel') return 'stay';
  if (answer === 'keep') return 'quit';
  try {
    await context.stopRuns();
    return 'quit';
  } catch (error) {
    await dialog.showMessageBox({
      type: 'error',
      message: 'A run could not be stopped.',
      detail: error instanceof Error ? error.message : String(error),
    });
    return 'stay';
  }
}

async function ask(names: string[]): Promise<'keep' | 'stop' | 'cancel'> {
  const list = names.join(', ');
  const { response } = await dialog.showMessageBox({
    type: 'question',
    message:
      names.length === 1
        ? `${list} is still training.`
        : `${String(names.length)} runs are still training: ${list}.`,
    detail:
      'They can go on without a window; open Tessera again to see them. Stopping finishes the step and saves a checkpoint to resume from.',
    buttons: ['Keep training, close Tessera', 'Stop and save, then quit', 'Cancel'],
    defaultId: 0,
    cancelId: 2,
  });
  return (['keep', 'stop', 'cancel'] as const)[response] ?? 'cancel';
}
