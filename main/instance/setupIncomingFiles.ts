import { app } from 'electron';
import type { AppContext } from '../appContext.ts';
import { pathsFromArguments } from './pathsFromArguments.ts';

/** Files that the program was started with or opened with (macOS sends those as events, before it is ready). */
export function setupIncomingFiles(context: AppContext): void {
  const paths = pathsFromArguments(process.argv, process.cwd(), app.getAppPath());
  if (paths.length > 0) context.incomingFiles.emit(paths);
  app.on('open-file', (event, path) => {
    event.preventDefault();
    context.incomingFiles.emit([path]);
  });
}
