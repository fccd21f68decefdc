/** Chromium gives up for good, with the whole program, after a few of these in a row. */
const limit = 2;
const windowMs = 60_000;

/** Counts deaths of the graphics process; true once the next one could end the program. */
export function createCrashWatch(): (atMs: number) => boolean {
  let deaths: number[] = [];
  return (atMs) => {
    deaths = [...deaths.filter((at) => atMs - at < windowMs), atMs];
    return deaths.length >= limit;
  };
}
