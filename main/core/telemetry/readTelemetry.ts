import type { FieldChunk } from '../../../db/queries/telemetry.ts';
import { rankDevices } from '../../contract/device.ts';
import type { TelemetrySeries } from '../../contract/telemetry.ts';

/** Each field of each source as at most `maxPoints` points, merged over equal spans of time with their extremes. */
export function mergeTelemetry(chunks: FieldChunk[], maxPoints: number): TelemetrySeries[] {
  const byField = new Map<string, FieldChunk[]>();
  for (const chunk of chunks) {
    const key = `${chunk.source} ${chunk.field}`;
    byField.set(key, [...(byField.get(key) ?? []), chunk]);
  }
  return [...byField.values()].flatMap((mine) => {
    const [first] = mine;
    return first === undefined ? [] : { source: first.source, field: first.field, ...merge(mine, maxPoints) };
  });
}

function merge(chunks: FieldChunk[], maxPoints: number) {
  const begin = Math.min(...chunks.map(({ atMs }) => atMs[0] ?? Infinity));
  const end = Math.max(...chunks.map(({ atMs }) => atMs.at(-1) ?? -Infinity));
  const count = chunks.reduce((sum, { values }) => sum + values.length, 0);
  const numBuckets = Math.max(1, Math.min(maxPoints, count));
  const width = Math.max(1e-9, (end - begin) / numBuckets);
  const buckets = new Map<number, { at: number; low: number; high: number; sum: number; count: number }>();
  for (const { atMs, values } of chunks) {
    for (let i = 0; i < values.length; i += 1) {
      const [at = 0, value = Number.NaN] = [atMs[i], values[i]];
      if (!Number.isFinite(value)) continue;
      const index = Math.min(numBuckets - 1, Math.floor((at - begin) / width));
      const bucket = buckets.get(index) ?? { at: 0, low: Infinity, high: -Infinity, sum: 0, count: 0 };
      bucket.at += at;
      bucket.low = Math.min(bucket.low, value);
      bucket.high = Math.max(bucket.high, value);
      bucket.sum += value;
      bucket.count += 1;
      buckets.set(index, bucket);
    }
  }
  const sorted = [...buckets.entries()].sort(([a], [b]) => a - b).map(([, bucket]) => bucket);
  return {
    atMs: Float64Array.from(sorted, (bucket) => bucket.at / bucket.count),
    minimum: Float64Array.from(sorted, ({ low }) => low),
    maximum: Float64Array.from(sorted, ({ high }) => high),
    mean: Float64Array.from(sorted, ({ sum, count: n }) => sum / n),
  };
}

/** Beyond this nobody trained between two readings: the run was stopped, or the machine slept. */
const longestGapMs = 5000;

/**
 * Joules that a run's GPUs took while it trained, and the most memory that one held; absent where none said.
 * @param device the run's: `cpu`, `cuda:0`, `cuda:0,1`; absent of older runs: all GPUs
 */
export function gpuTotals(
  chunks: FieldChunk[],
  device: string | undefined,
): { energyJ?: number; peakGpuBytes?: number } {
  const mine =
    device === undefined ? undefined : rankDevices(device).map((name) => name.replace('cuda:', 'gpu'));
  const energy = new Map<string, { joules: number; last: number; atMs: number }>();
  let peak = -Infinity;
  for (const { source, field, values, atMs } of chunks) {
    if (field !== 'energyJ' && field !== 'memoryBytes') continue;
    if (mine === undefined ? !source.startsWith('gpu') : !mine.includes(source)) continue;
    for (let i = 0; i < values.length; i += 1) {
      const [value = Number.NaN, at = 0] = [values[i], atMs[i]];
      if (!Number.isFinite(value)) continue;
      if (field === 'memoryBytes') peak = Math.max(peak, value);
      else {
        const before = energy.get(source) ?? { joules: 0, last: value, atMs: at };
        // The counter begins anew with the driver.
        const isNext = at - before.atMs <= longestGapMs && value >= before.last;
        const joules = before.joules + (isNext ? value - before.last : 0);
        energy.set(source, { joules, last: value, atMs: at });
      }
    }
  }
  const joules = [...energy.values()].reduce((sum, each) => sum + each.joules, 0);
  return {
    ...(energy.size > 0 && { energyJ: joules }),
    ...(peak > 0 && { peakGpuBytes: peak }),
  };
}
