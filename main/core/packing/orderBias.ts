import type { Plan } from './plan.ts';

/**
 * How far a plan orders examples by length: 0 is as good as shuffled, 1 is sorted, below 0 is the contrary of sorted.
 *
 * `withinBins`: the intraclass correlation of length, (length - mean) × (mean of the others in its bin - mean) averaged
 * over all examples that share a bin, over the variance of all lengths. Near 1 where examples of like length share a
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
  const { mean, variance } = moments(length);
  const binMeans = new Float64Array(binOffsets.length - 1);
  let likeness = 0;
  let sharing = 0;
  for (let bin = 0; bin < binMeans.length; bin++) {
    const items = length.subarray(binOffsets[bin], binOffsets[bin + 1]);
    let sum = 0;
    let squares = 0;
    for (const item of items) {
      sum += item - mean;
      squares += (item - mean) ** 2;
    }
    binMeans[bin] = sum / items.length;
    if (items.length > 1) {
      likeness += (sum * sum - squares) / (items.length - 1);
      sharing += items.length;
    }
  }
  return {
    withinBins: variance > 0 && sharing > 0 ? likeness / sharing / variance : 0,
    betweenBins: correlation(binMeans.subarray(0, -1), binMeans.subarray(1)),
  };
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
