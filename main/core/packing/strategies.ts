import type { Random } from '../random.ts';
import { OpenBins } from './openBins.ts';

/** Pieces arranged in bins: bin b holds items `order[offsets[b] … offsets[b + 1]]`. */
export interface Bins {
  order: Int32Array;
  offsets: Int32Array;
}

/** Arranges items of the given lengths (each 1 … `budget`) in bins of at most `budget` positions. */
type Arrange = (lengths: Int32Array, budget: number, random: Random) => Bins;

/** A way to fill bins. */
export interface StrategyInfo {
  /** What it does, a sentence. */
  summary: string;
  /** Every item of a bin is computed as long as the bin's longest. */
  pads: boolean;
  arrange: Arrange;
}

export const STRATEGIES = {
  padded: {
    summary:
      'Rows of the dataset in order, padded to the longest of the batch: what a plain data loader does.',
    pads: true,
    arrange: (lengths, budget) => batch(lengths, inFileOrder(lengths), budget),
  },
  sorted: {
    summary: 'Padded batches after sorting by length, the longest first.',
    pads: true,
    arrange: (lengths, budget, random) => batch(lengths, byFallingLength(lengths, budget, random), budget),
  },
  'in-order': {
    summary: 'The next bin is opened when the next example does not fit; the order of the dataset is kept.',
    pads: false,
    arrange: (lengths, budget) => fillInOrder(lengths, budget),
  },
  'best-fit': {
    summary: 'Each example, in shuffled order, goes to the fullest bin that still holds it.',
    pads: false,
    arrange: (lengths, budget, random) =>
      shuffleBins(bestFit(lengths, random.shuffle(inFileOrder(lengths)), budget), random),
  },
  ffd: {
    summary: 'The longest first, each to the first bin that holds it; bins in the order they were opened.',
    pads: false,
    arrange: (lengths, budget, random) => firstFit(lengths, byFallingLength(lengths, budget, random), budget),
  },
  bfd: {
    summary: 'The longest first, each to the fullest bin that holds it; then the bins are shuffled.',
    pads: false,
    arrange: (lengths, budget, random) =>
      shuffleBins(bestFit(lengths, byFallingLength(lengths, budget, random), budget), random),
  },
} as const satisfies Record<string, StrategyInfo>;

export type Strategy = keyof typeof STRATEGIES;

function inFileOrder(lengths: Int32Array): Int32Array {
  return Int32Array.from(lengths.keys());
}

/** Counting sort; examples of one length come in random order. */
function byFallingLength(lengths: Int32Array, budget: number, random: Random): Int32Array {
  return groupBy(
    random.shuffle(inFileOrder(lengths)),
    (item) => budget - (lengths[item] as number),
    budget + 1,
  ).order;
}

/** Stable: items by rising key, and where each key's group begins [keys + 1]. */
function groupBy(items: Int32Array, keyOf: (item: number) => number, keys: number): Bins {
  const offsets = new Int32Array(keys + 1);
  for (const item of items) add(offsets, keyOf(item) + 1, 1);
  for (let key = 0; key < keys; key++) add(offsets, key + 1, offsets[key] as number);
  const cursor = offsets.slice(0, keys);
  const order = new Int32Array(items.length);
  for (const item of items) order[add(cursor, keyOf(item), 1) - 1] = item;
  return { order, offsets };
}

/** Rows × longest ≤ budget. */
function batch(lengths: Int32Array, order: Int32Array, budget: number): Bins {
  let longest = 0;
  let rows = 0;
  return cut(order, (item) => {
    const length = lengths[item] as number;
    const fits = Math.max(longest, length) * (rows + 1) <= budget;
    longest = fits ? Math.max(longest, length) : length;
    rows = fits ? rows + 1 : 1;
    return fits;
  });
}

function fillInOrder(lengths: Int32Array, budget: number): Bins {
  let used = 0;
  return cut(inFileOrder(lengths), (item) => {
    const length = lengths[item] as number;
    const fits = used + length <= budget;
    used = fits ? used + length : length;
    return fits;
  });
}

/** Cuts an order into bins; `fits` is asked of each item in turn and opens a bin by saying no. */
function cut(order: Int32Array, fits: (item: number) => boolean): Bins {
  const offsets = new Int32Array(order.length + 1);
  let bins = 0;
  order.forEach((item, i) => {
    if (!fits(item)) offsets[++bins] = i;
  });
  if (order.length > 0) offsets[++bins] = order.length;
  return { order, offsets: offsets.slice(0, bins + 1) };
}

function bestFit(lengths: Int32Array, order: Int32Array, budget: number): Bins {
  const open = new OpenBins(budget, order.length);
  const binOf = new Int32Array(order.length);
  let bins = 0;
  for (const item of order) {
    const length = lengths[item] as number;
    const left = open.fitting(length);
    const bin = left < 0 ? bins++ : open.take(left);
    binOf[item] = bin;
    open.add(bin, (left < 0 ? budget : left) - length);
  }
  return groupBy(order, (item) => binOf[item] as number, bins);
}

/** A tree over the bins whose nodes hold the most that any bin below has left: the first that fits is a walk down. */
function firstFit(lengths: Int32Array, order: Int32Array, budget: number): Bins {
  const leaves = 2 ** Math.ceil(Math.log2(Math.max(1, order.length)));
  const most = new Int32Array(2 * leaves).fill(budget);
  const binOf = new Int32Array(order.length);
  let bins = 0;
  for (const item of order) {
    const length = lengths[item] as number;
    let node = 1;
    while (node < leaves) node = (most[2 * node] as number) >= length ? 2 * node : 2 * node + 1;
    const bin = node - leaves;
    bins = Math.max(bins, bin + 1);
    binOf[item] = bin;
    add(most, node, -length);
    for (node >>= 1; node > 0; node >>= 1) {
      most[node] = Math.max(most[2 * node] as number, most[2 * node + 1] as number);
    }
  }
  return groupBy(order, (item) => binOf[item] as number, bins);
}

function add(values: Int32Array, at: number, amount: number): number {
  return (values[at] = (values[at] as number) + amount);
}

function shuffleBins(bins: Bins, random: Random): Bins {
  const count = bins.offsets.length - 1;
  const order = new Int32Array(bins.order.length);
  const offsets = new Int32Array(count + 1);
  random.shuffle(Int32Array.from({ length: count }, (_, bin) => bin)).forEach((bin, i) => {
    const items = bins.order.subarray(bins.offsets[bin], bins.offsets[bin + 1]);
    order.set(items, offsets[i]);
    offsets[i + 1] = (offsets[i] as number) + items.length;
  });
  return { order, offsets };
}
