import type { RunMetric, RunStep } from '../../../main/contract/runs.ts';

/** Columns of one metric as charts take them. */
export interface LiveSeries {
  steps: ArrayLike<number>;
  minimum: ArrayLike<number>;
  maximum: ArrayLike<number>;
  mean: ArrayLike<number>;
}

export function emptySeries(): LiveSeries {
  const none = new Float64Array(0);
  return { steps: none, minimum: none, maximum: none, mean: none };
}

/** Adds steps at the end; those that the series already holds (read while they arrived) are left out. */
export function appendStep(series: LiveSeries, metric: RunMetric, steps: RunStep[]): LiveSeries {
  const newest = series.steps[series.steps.length - 1] ?? -Infinity;
  const fresh = steps.filter(({ step }) => step > newest);
  if (fresh.length === 0) return series;
  const values = fresh.map((step) => valueOf(step, metric));
  return {
    steps: join(
      series.steps,
      fresh.map(({ step }) => step),
    ),
    minimum: join(series.minimum, values),
    maximum: join(series.maximum, values),
    mean: join(series.mean, values),
  };
}

function valueOf(step: RunStep, metric: RunMetric): number {
  if (metric === 'tokensPerSecond')
    return step.milliseconds > 0 ? (step.realTokens / step.milliseconds) * 1000 : 0;
  if (metric === 'flopsPerSecond') return step.milliseconds > 0 ? (step.flops / step.milliseconds) * 1000 : 0;
  return step[metric];
}

function join(before: ArrayLike<number>, after: number[]): Float64Array {
  const out = new Float64Array(before.length + after.length);
  out.set(before);
  out.set(after, before.length);
  return out;
}
