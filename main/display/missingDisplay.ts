import { readFileSync } from 'node:fs';

/**
 * Why no window can be opened here, or undefined where one can. Asked before Electron looks for a display itself: it
 * ends with a segmentation fault where it finds none.
 * @param sockets the machine's Unix sockets as `/proc/net/unix` lists them; undefined where that cannot be read
 */
export function missingDisplay(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform,
  sockets: string | undefined,
): string | undefined {
  if (platform !== 'linux' || isSet(env.WAYLAND_DISPLAY)) return undefined;
  if (!isSet(env.DISPLAY)) return 'neither DISPLAY nor WAYLAND_DISPLAY is set';
  // Only a display of this machine can be looked up; one of another (ssh -X) is left to Electron.
  const number = /^(?:unix)?:(\d+)/.exec(env.DISPLAY)?.[1];
  if (number === undefined || sockets === undefined) return undefined;
  const isThere = sockets.split('\n').some((line) => line.endsWith(`/.X11-unix/X${number}`));
  return isThere ? undefined : `DISPLAY is ${env.DISPLAY}, and nothing serves it`;
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== '';

/** Says on stderr why there is no window and what works without one. */
export function explainMissingDisplay(why: string, command: string): string {
  return [
    `Tessera has no display to open its window on: ${why}.`,
    `In a terminal the same work is done by:  ${command}`,
    '',
  ].join('\n');
}

export function unixSockets(): string | undefined {
  try {
    return readFileSync('/proc/net/unix', 'utf8');
  } catch {
    return undefined;
  }
}
