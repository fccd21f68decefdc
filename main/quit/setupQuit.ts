import { app, dialog } from 'electron';
import type { AppContext } from '../appContext.ts';

/**
 * Quitting with runs going asks what becomes of them: they can go on in the core, which then ends by itself after
 * them. With none going the core has nothing to stay for once the last window's link is gone.
 */
export function setupQuit(context: AppContext): void {
  app.on('before-quit', (event) => {
    const runs = context.activeRuns.get();
    if (context.isQuitting || runs.length === 0) {
      context.isQuitting = true;
      return;
    }
    event.preventDefault();
    void ask(context).then((decision) => {
      if (decision === 'stay') return;
      context.isQuitting = true;
      app.quit();
    });
  });
}

async function ask(context: AppContext): Promise<'quit' | 'stay'> {
  const runs = context.activeRuns.get();
  const names = runs.map((run) => run.name).join(', ');
  const answer = await dialog.showMessageBox({
    type: 'question',
    message:
      runs.length === 1 ? `${names} is still training.` : `${runs.length} runs are still training: ${names}.`,
    detail:
      'They can go on without a window; open Tessera again to see them. Stopping finishes the step and saves a checkpoint to resume from.',
    buttons: ['Keep training, close Tessera', 'Stop and save, then quit', 'Cancel'],
    defaultId: 0,
    cancelId: 2,
  });
  if (answer.response === 2) return 'stay';
  if (answer.response === 1) await context.stopRuns();
  return 'quit';
}
