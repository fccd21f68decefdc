import { join } from 'node:path';
import { app } from 'electron';
import { explainMissingDisplay, missingDisplay, unixSockets } from './missingDisplay.ts';

/** Ends the program in words, with exit code 1, where no window can be. */
export function setupDisplay(): void {
  const why = missingDisplay(process.env, process.platform, unixSockets());
  if (why === undefined) return;
  const command = app.isPackaged
    ? `${join(process.resourcesPath, 'bin/tessera')} first-run`
    : 'npm start -- --terminal';
  process.stderr.write(explainMissingDisplay(why, command));
  process.exit(1);
}
