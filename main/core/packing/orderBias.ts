import type { Plan } from './plan.ts';

/**
 * How far a plan orders examples by length: 0 is as good as shuffled, 1 is sorted, below 0 is the contrary of sorted.
 *
 * `withinBins`: the intraclass correlation of length, the mean of (length - mean) × (mean of the others in its bin - mean)
 * over the variance, among the examples that share a bin with another. Near 1 where examples of like length share a
 * bin. Order inside a bin does not enter, as it does not matter: a step's gradient is a sum.
 * `betweenBins`: Pearson's correlation of a bin's mean length with that of the bin before it. Near 1 where training
 * drifts from long examples to short ones or back.
 * Both are 0 where no two lengths differ. Noise of n shuffled examples or bins: about 1 / √n.
 */
export interface OrderBias {
  withinBins: number;
  betweenBins: number;
}

export function orderBias({ length, binOffsets }: Pick<Plan, 'length' | 'binOffsets'>): OrderBias {
  const bins = Array.from({ length: binOffsets.length - 1 }, (_, bin) =>
    length.subarray(binOffsets[bin], binOffsets[bin + 1]),
  );
  const binMeans = Float64Array.from(bins, (items) => moments(items).mean);
  return {
    withinBins: likeness(bins.filter((items) => items.length > 1)),
    betweenBins: correlation(binMeans.subarray(0, -1), binMeans.subarray(1)),
  };
}

/** Bins of which three times the noise, 3 / √n, is the whole range of a correlation. */
const fewest = 10;

/**
 * One sentence of what an order means for training, from its numbers: a strategy alone does not say it, since one that
 * keeps the file's order has the file's bias. What lies within three times the noise of a shuffled order is called none.
 */
export function biasMeaning({ withinBins, betweenBins }: OrderBias, examples: number, bins: number): string {
  // So few would look ordered when shuffled.
  if (Math.min(examples, bins) < fewest) return 'Too few bins to tell an order of lengths from chance.';
  const isNone = (value: number, count: number) => Math.abs(value) <= Math.max(0.02, 3 / Math.sqrt(count));
  const steps =
    betweenBins > 0.5
      ? 'steps run from one length to another, a curriculum nobody asked for'
      : isNone(betweenBins, bins)
        ? 'steps come in no order of length'
        : betweenBins > 0
          ? 'neighbouring steps are of like length'
          : 'long and short steps take turns';
  if (withinBins > 0.9) return `Each bin holds one length, and ${steps}.`;
  if (isNone(withinBins, examples))
    return isNone(betweenBins, bins)
      ? 'As good as shuffled: lengths meet in a bin as in a random draw, and steps come in no order of length.'
      : `Lengths meet in a bin as in a random draw, but ${steps}.`;
  return withinBins > 0
    ? `Examples of like length share a bin, so a step sees fewer lengths than a random draw; ${steps}.`
    : `Long examples share their bin with short ones more than by chance, since only those fit beside them; ${steps}.`;
}

function likeness(bins: Int32Array[]): number {
  const sharing = new Int32Array(bins.reduce((sum, items) => sum + items.length, 0));
  let at = 0;
  for (const items of bins) {
    sharing.set(items, at);
    at += items.length;
  }
  const { mean, variance } = moments(sharing);
  let products = 0;
  for (const items of bins) {
    const own = moments(items);
    const sum = (own.mean - mean) * items.length;
    const squares = own.variance * items.length + sum * (own.mean - mean);
    products += (sum * sum - squares) / (items.length - 1);
  }
  return variance > 0 ? products / sharing.length / variance : 0;
}

function correlation(x: Float64Array, y: Float64Array): number {
  const [ofX, ofY] = [moments(x), moments(y)];
  const product = x.reduce((sum, value, i) => sum + (value - ofX.mean) * ((y[i] as number) - ofY.mean), 0);
  const scale = x.length * Math.sqrt(ofX.variance * ofY.variance);
  return scale > 0 ? product / scale : 0;
}

function moments(values: Int32Array | Float64Array): { mean: number; variance: number } {
  let sum = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  let squares = 0;
  for (const value of values) squares += (value - mean) ** 2;
  return { mean, variance: squares / values.length };
}
