import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/**
 * The files named on a command line. The program itself comes first, in development followed by the app's folder;
 * what looks like an option, or does not exist, is no file.
 */
export function pathsFromArguments(argv: string[], workingDirectory: string, isPackaged: boolean): string[] {
  const rest = argv.slice(isPackaged ? 1 : 2);
  return rest
    .filter((argument, index) => !argument.startsWith('-') && rest[index - 1] !== '--home')
    .map((argument) => resolve(workingDirectory, argument))
    .filter((path) => existsSync(path));
}
