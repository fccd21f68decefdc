import { app, dialog } from 'electron';
import type { AppContext } from '../appContext.ts';
import { relaunch } from '../instance/relaunch.ts';
import { createCrashWatch } from './crashWatch.ts';

/**
 * A graphics process that dies is started again by Chromium, and the page goes on. One that keeps dying would take the
 * window with it: from then on Tessera draws without it, remembers that, and starts itself again. Runs belong to the
 * core and are not touched. `--gpu` tries the graphics process once more (after a new driver, say).
 */
export function setupGpu(context: AppContext): void {
  if (process.argv.includes('--gpu')) context.settings.update({ drawsInSoftware: false });
  if (context.settings.get().drawsInSoftware) app.disableHardwareAcceleration();
  const isLosing = createCrashWatch();
  app.on('child-process-gone', (_event, { type, reason }) => {
    if (type !== 'GPU' || reason === 'clean-exit' || context.isQuitting) return;
    process.stderr.write(`[main ${process.pid}] the graphics process ended (${reason})\n`);
    if (context.settings.get().drawsInSoftware || !isLosing(performance.now())) return;
    context.settings.update({ drawsInSoftware: true });
    void startAgain(context);
  });
}

async function startAgain(context: AppContext): Promise<void> {
  if (process.env.TESSERA_NO_DIALOGS !== '1') {
    const { response } = await dialog.showMessageBox({
      type: 'warning',
      message: 'The graphics driver keeps failing.',
      detail:
        'From its next start on, Tessera draws without it: charts are a little slower, nothing else changes. Runs are not affected. Start with --gpu to try the driver again.',
      buttons: ['Start again now', 'Later'],
      defaultId: 0,
      cancelId: 1,
    });
    if (response !== 0) return;
  }
  relaunch(
    context,
    process.argv.slice(1).filter((argument) => argument !== '--gpu'),
  );
}
