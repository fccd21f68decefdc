/** What lengths of examples tell, computed once so that a budget can be dragged over them without waiting. */
export interface LengthStats {
  /** Ascending. */
  sorted: Int32Array;
  /** sums[i]: tokens of the i shortest examples. */
  sums: Float64Array;
  mean: number;
}

export interface LengthBin {
  from: number;
  to: number;
  count: number;
  tokens: number;
  supervised: number;
}

export function statsOf(lengths: Int32Array): LengthStats {
  const sorted = lengths.slice().sort();
  const sums = new Float64Array(sorted.length + 1);
  for (const [i, length] of sorted.entries()) sums[i + 1] = (sums[i] ?? 0) + length;
  return { sorted, sums, mean: sorted.length === 0 ? 0 : (sums.at(-1) ?? 0) / sorted.length };
}

/** By nearest rank, as the core counts them. */
export function percentile({ sorted }: LengthStats, share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

/** How many examples are longer than a budget, and how many of their tokens lie beyond it. */
export function beyond({ sorted, sums }: LengthStats, budget: number): { examples: number; tokens: number } {
  const first = numUpTo(sorted, budget);
  const examples = sorted.length - first;
  return { examples, tokens: (sums.at(-1) ?? 0) - (sums[first] ?? 0) - examples * budget };
}

/** Share of all tokens that stand in examples up to this length. */
export function tokenShare({ sorted, sums }: LengthStats, length: number): number {
  const total = sums.at(-1) ?? 0;
  return total === 0 ? 0 : (sums[numUpTo(sorted, length)] ?? 0) / total;
}

/** The axis of lengths: powers of two around all of them, with room for a budget that is longer. */
export function lengthRange({ sorted }: LengthStats): [number, number] {
  const low = 2 ** Math.floor(Math.log2(Math.max(1, sorted[0] ?? 1)));
  const high = 2 ** Math.ceil(Math.log2(Math.max(2, (sorted.at(-1) ?? 2) + 1)));
  return [low, Math.max(2 * high, 4 * low)];
}

/** Bins of equal width on a logarithmic axis; none narrower than one token. */
export function binLengths(
  lengths: Int32Array,
  supervised: Int32Array,
  [low, high]: readonly [number, number],
  numBins: number,
): LengthBin[] {
  const edges = new Set<number>();
  for (let i = 0; i <= numBins; i++) edges.add(Math.round(low * (high / low) ** (i / numBins)));
  const bounds = [...edges];
  const bins = bounds
    .slice(0, -1)
    .map((from, i) => ({ from, to: bounds[i + 1] ?? high, count: 0, tokens: 0, supervised: 0 }));
  for (const [i, length] of lengths.entries()) {
    const bin = bins[Math.max(0, numUpTo(bounds, length) - 1)] ?? bins.at(-1);
    if (bin === undefined) continue;
    bin.count += 1;
    bin.tokens += length;
    bin.supervised += supervised[i] ?? 0;
  }
  return bins;
}

/** Examples by the share of their tokens that is learned, in steps of 5 %. */
export function binShares(lengths: Int32Array, supervised: Int32Array): number[] {
  const counts = Array.from({ length: 20 }, () => 0);
  for (const [i, length] of lengths.entries()) {
    const step = Math.min(19, Math.floor((20 * (supervised[i] ?? 0)) / Math.max(1, length)));
    counts[step] = (counts[step] ?? 0) + 1;
  }
  return counts;
}

/** How many of the ascending values are at most `limit`. */
function numUpTo(ascending: ArrayLike<number>, limit: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
