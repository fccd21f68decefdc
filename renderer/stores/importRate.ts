export interface Sample {
  atMs: number;
  value: number;
}

const windowMs = 5000;
const minimumMs = 400;

/** Growth a second over the last five; undefined until there is enough to tell. Drops the samples it no longer needs. */
export function rateOf(samples: Sample[]): number | undefined {
  const last = samples.at(-1);
  if (last === undefined) return undefined;
  while (samples.length > 2 && last.atMs - (samples[1]?.atMs ?? 0) > windowMs) samples.shift();
  const first = samples[0] ?? last;
  const tookMs = last.atMs - first.atMs;
  return tookMs < minimumMs ? undefined : ((last.value - first.value) * 1000) / tookMs;
}
