import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/**
 * The files named on a command line. Options and their values are none, nor is what does not exist, nor the app's own
 * folder, which stands among the arguments in development.
 */
export function pathsFromArguments(argv: string[], workingDirectory: string, appFolder: string): string[] {
  const rest = argv.slice(1);
  return rest
    .filter((argument, index) => !argument.startsWith('-') && rest[index - 1] !== '--home')
    .map((argument) => resolve(workingDirectory, argument))
    .filter((path) => path !== resolve(appFolder) && existsSync(path));
}
