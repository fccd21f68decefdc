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

interface Reading {
  atMs: number;
  value: number;
}

/** Joules from watts between two moments. */
function integrate(power: Reading[], fromMs: number, toMs: number): number {
  let joules = 0;
  for (const [i, { atMs, value }] of power.entries()) {
    const before = power[i - 1];
    if (before === undefined || before.atMs < fromMs || atMs > toMs) continue;
    if (atMs - before.atMs <= longestGapMs)
      joules += (((value + before.value) / 2) * (atMs - before.atMs)) / 1000;
  }
  return joules;
}

/**
 * Joules of readings that follow each other. The engine reads the counter every few seconds and tells the last
 * reading in between: it is exact from one change to another, and before the first and after the last one the
 * power counts, where it was told.
 */
function joulesOf(energy: Reading[], power: Reading[]): number {
  const [first, last] = [energy[0], energy.at(-1)];
  if (first === undefined || last === undefined) return 0;
  if (!power.some(({ atMs }) => atMs >= first.atMs && atMs <= last.atMs)) return last.value - first.value;
  const changes = energy.filter(({ value }, i) => i > 0 && value !== energy[i - 1]?.value);
  const [from, to] = [changes[0], changes.at(-1)];
  if (from === undefined || to === undefined) return integrate(power, first.atMs, last.atMs);
  return (
    integrate(power, first.atMs, from.atMs) + to.value - from.value + integrate(power, to.atMs, last.atMs)
  );
}

/** Where the run went on without a pause; the counter begins anew with the driver. */
function stretches(energy: Reading[]): Reading[][] {
  const all: Reading[][] = [];
  for (const reading of energy) {
    const before = all.at(-1)?.at(-1);
    const isNext =
      before !== undefined && reading.atMs - before.atMs <= longestGapMs && reading.value >= before.value;
    if (isNext) all.at(-1)?.push(reading);
    else all.push([reading]);
  }
  return all;
}

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
  const energy = new Map<string, Reading[]>();
  const power = new Map<string, Reading[]>();
  let peak = -Infinity;
  for (const { source, field, values, atMs } of chunks) {
    if (mine === undefined ? !source.startsWith('gpu') : !mine.includes(source)) continue;
    if (field === 'memoryBytes')
      for (const value of values) peak = Number.isFinite(value) ? Math.max(peak, value) : peak;
    if (field !== 'energyJ' && field !== 'powerW') continue;
    const bySource = field === 'energyJ' ? energy : power;
    const readings = bySource.get(source) ?? [];
    for (const [i, value] of values.entries())
      if (Number.isFinite(value)) readings.push({ atMs: atMs[i] ?? 0, value });
    bySource.set(source, readings);
  }
  const joules = [...energy].flatMap(([source, readings]) =>
    stretches(readings).map((each) => joulesOf(each, power.get(source) ?? [])),
  );
  return {
    ...(energy.size > 0 && { energyJ: joules.reduce((sum, each) => sum + each, 0) }),
    ...(peak > 0 && { peakGpuBytes: peak }),
  };
}
