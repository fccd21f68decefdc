import { app } from 'electron';
import type { AppContext } from '../appContext.ts';
import { pathsFromArguments } from './pathsFromArguments.ts';

/** One program per home. Returns false in a second start, which hands its files to the first and ends. */
export function setupSingleInstance(context: AppContext): boolean {
  if (!app.requestSingleInstanceLock()) {
    app.quit();
    return false;
  }
  app.on('second-instance', (_event, argv, workingDirectory) => {
    context.showWindow();
    const paths = pathsFromArguments(argv, workingDirectory, app.getAppPath());
    if (paths.length > 0) context.incomingFiles.emit(paths);
  });
  return true;
}
