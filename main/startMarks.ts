import { performance } from 'node:perf_hooks';

/**
 * Moments on the way to a usable window, for `scripts/bench/start.mjs`: a line each on stderr where
 * `TESSERA_START_MARKS=1` asks for them, in milliseconds since 1970 so that processes can be compared.
 */
const isWanted = process.env.TESSERA_START_MARKS === '1';

export function markStart(name: string, atMs = performance.timeOrigin + performance.now()): void {
  if (isWanted) process.stderr.write(`[start] ${name} ${atMs.toFixed(1)}\n`);
}
