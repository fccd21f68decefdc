import type { LengthSummary } from './tokenCache.ts';

/** Counts examples by length in tokens; exact, in memory that grows with the distinct lengths only. */
export class LengthCounter {
  private readonly counts = new Map<number, number>();

  add(length: number): void {
    this.counts.set(length, (this.counts.get(length) ?? 0) + 1);
  }

  /** Percentiles by nearest rank; bounds of the histogram are powers of two and their middles. */
  summary(): LengthSummary {
    const sorted = [...this.counts].sort((a, b) => a[0] - b[0]);
    const total = sorted.reduce((sum, [, count]) => sum + count, 0);
    const percentile = (share: number) => {
      let rank = Math.ceil(share * total);
      return sorted.find(([, count]) => (rank -= count) <= 0)?.[0] ?? 0;
    };
    return {
      min: sorted[0]?.[0] ?? 0,
      p50: percentile(0.5),
      p90: percentile(0.9),
      p99: percentile(0.99),
      max: sorted.at(-1)?.[0] ?? 0,
      histogram: histogram(sorted),
    };
  }
}

function histogram(sorted: [number, number][]): [number, number][] {
  const buckets = new Map<number, number>();
  for (const [length, count] of sorted) {
    const upper = 2 ** Math.ceil(Math.log2(Math.max(length, 16)));
    const middle = upper * 0.75;
    const upTo = length <= middle && upper > 16 ? middle : upper;
    buckets.set(upTo, (buckets.get(upTo) ?? 0) + count);
  }
  return [...buckets];
}
