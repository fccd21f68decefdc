import { appendFileSync, renameSync, statSync } from 'node:fs';

export type Log = (message: string) => void;

const maxLogBytes = 5 * 1024 * 1024;

/** A log file with time and pid on each line; one older generation is kept. Synchronous, so a crash is in it. */
export function openLog(path: string): Log {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > maxLogBytes) renameSync(path, `${path}.1`);
  return (message) => {
    const stamp = new Date().toISOString();
    try {
      appendFileSync(path, `${stamp} ${String(process.pid)} ${message.trimEnd()}\n`);
    } catch {
      // A full disk must not take the work down with the log.
    }
  };
}
