import { existsSync, readFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';

// Nothing but Node's own modules is imported: set-up reads this before there are any packages.

/** `TESSERA_HOME`, else the home that was chosen and is there, else the platform's data folder. */
export function defaultHome(env: NodeJS.ProcessEnv = process.env): string {
  if (env.TESSERA_HOME !== undefined && env.TESSERA_HOME !== '') return env.TESSERA_HOME;
  const usual = platformHome(env);
  try {
    const { home } = JSON.parse(readFileSync(join(usual, pointerName), 'utf8')) as { home?: unknown };
    if (typeof home === 'string' && existsSync(home)) return home;
  } catch {
    // None was chosen.
  }
  return usual;
}

/** Lies in the usual home and names the one to use instead. */
export const pointerName = 'location.json';

export function platformHome(env: NodeJS.ProcessEnv): string {
  if (process.platform === 'win32')
    return join(absolute(env.APPDATA) ?? join(userFolder(), 'AppData', 'Roaming'), 'Tessera');
  if (process.platform === 'darwin') return join(userFolder(), 'Library', 'Application Support', 'Tessera');
  return join(absolute(env.XDG_DATA_HOME) ?? join(userFolder(), '.local', 'share'), 'tessera');
}

/** An empty `HOME` would be the working folder. */
function userFolder(): string {
  return absolute(homedir()) ?? userInfo().homedir;
}

/** An empty or a relative folder counts as none, as the XDG specification has it: it would be another one in each place. */
function absolute(folder: string | undefined): string | undefined {
  return folder !== undefined && isAbsolute(folder) ? folder : undefined;
}
