import { app, dialog } from 'electron';

/**
 * A fault of the main process ends in words, not in Electron's modal stack trace (under which a test hangs for good).
 * The core and its runs are other processes and go on.
 */
export function setupErrors(): void {
  process.on('uncaughtException', report);
  process.on('unhandledRejection', report);
}

function report(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`[main ${process.pid}] ${text}\n`);
  if (app.isReady() && process.env.TESSERA_NO_DIALOGS !== '1') {
    const choice = dialog.showMessageBoxSync({
      type: 'error',
      title: 'Tessera',
      message: 'Something went wrong in the window’s own process.',
      detail: `${error instanceof Error ? error.message : String(error)}\n\nRuns are not affected: they belong to the core.`,
      buttons: ['Start again', 'Quit'],
      defaultId: 0,
    });
    if (choice === 0) app.relaunch();
  }
  app.exit(1);
}
