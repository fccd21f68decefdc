import type { SeriesColumns } from '../../charts/decimate.ts';
import type { RunAxis, RunMetric, RunStep } from '../../../main/contract/runs.ts';

/** Columns of one metric, `x` along the axis that the charts are drawn over. */
export type LiveSeries = SeriesColumns;

const columns = ['steps', 'x', 'minimum', 'maximum', 'mean', 'numNonFinite'] as const;

export function emptySeries(): LiveSeries {
  const none = new Float64Array(0);
  return { steps: none, x: none, minimum: none, maximum: none, mean: none, numNonFinite: none };
}

/** Adds steps at the end; those that the series already holds (read while they arrived) are left out. */
export function appendStep(
  series: LiveSeries,
  metric: RunMetric,
  steps: RunStep[],
  axis: RunAxis = 'step',
): LiveSeries {
  const newest = series.steps[series.steps.length - 1] ?? -Infinity;
  const fresh = steps.filter(({ step }) => step > newest);
  if (fresh.length === 0) return series;
  const values = fresh.map((step) => valueOf(step, metric));
  const added: Record<(typeof columns)[number], number[]> = {
    steps: fresh.map(({ step }) => step),
    x: fresh.map((step) => placeOf(step, axis)),
    minimum: values,
    maximum: values,
    mean: values,
    numNonFinite: values.map((value) => (Number.isFinite(value) ? 0 : 1)),
  };
  return build((name) => extend(series[name], added[name]));
}

/** The coarse series with its part from `detail`'s first step to its last replaced by `detail`. */
export function splice(coarse: LiveSeries, detail: LiveSeries | undefined): LiveSeries {
  if (detail === undefined || detail.steps.length === 0) return coarse;
  const first = detail.steps[0] ?? 0;
  const last = detail.steps[detail.steps.length - 1] ?? 0;
  const { steps } = coarse;
  let begin = 0;
  while (begin < steps.length && (steps[begin] ?? 0) < first) begin += 1;
  let end = begin;
  while (end < steps.length && (steps[end] ?? 0) <= last) end += 1;
  return build((name) => {
    const column = Array.from(coarse[name]);
    return join(join(column.slice(0, begin), Array.from(detail[name])), column.slice(end));
  });
}

/** Where a step lies on the axis: between the points that are known, beyond them at their pace. */
export function placeOfStep(series: LiveSeries, step: number): number {
  return interpolate(series.steps, series.x, step);
}

export function stepAtPlace(series: LiveSeries, x: number): number {
  return Math.max(0, Math.round(interpolate(series.x, series.steps, x)));
}

/**
 * The end of an axis that is worked out from a run's pace, and so changes with every step: it stands still while the
 * newest guess is near it, so that nothing moves under the pointer.
 */
export function steadyEnd(before: number | undefined, guess: number): number {
  return before !== undefined && guess <= before && guess >= 0.9 * before ? before : guess * 1.03;
}

function interpolate(from: ArrayLike<number>, to: ArrayLike<number>, at: number): number {
  const { length } = from;
  const last = from[length - 1] ?? 0;
  if (length === 0 || last <= 0) return at;
  const end = to[length - 1] ?? 0;
  // Over steps themselves nothing is worked out: 4000 / 7 × 7 is no whole number.
  if (at >= last) return end === last ? at : (at / last) * end;
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((from[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const [a, b] = low === 0 ? [0, from[0] ?? 0] : [from[low - 1] ?? 0, from[low] ?? 0];
  const [c, d] = low === 0 ? [0, to[0] ?? 0] : [to[low - 1] ?? 0, to[low] ?? 0];
  return b === a ? d : c + ((at - a) / (b - a)) * (d - c);
}

function placeOf(step: RunStep, axis: RunAxis): number {
  return { step: step.step, tokens: step.realTokensTotal, elapsed: step.elapsedMs, flops: step.flopsTotal }[
    axis
  ];
}

function valueOf(step: RunStep, metric: RunMetric): number {
  const perSecond = (amount: number) => (step.milliseconds > 0 ? (amount / step.milliseconds) * 1000 : 0);
  if (metric === 'tokensPerSecond') return perSecond(step.realTokens);
  if (metric === 'flopsPerSecond') return perSecond(step.flops);
  return step[metric];
}

function build(of: (name: (typeof columns)[number]) => ArrayLike<number>): LiveSeries {
  return Object.fromEntries(columns.map((name) => [name, of(name)])) as unknown as LiveSeries;
}

/** How many numbers of a buffer are in use: what lies beyond may be written by whoever adds at its end. */
const used = new WeakMap<ArrayBufferLike, number>();

/** `before` with `added` at its end; room is doubled when it runs out, so that a long run costs no copy a step. */
function extend(before: ArrayLike<number>, added: number[]): Float64Array {
  const length = before.length + added.length;
  const hasRoom =
    before instanceof Float64Array &&
    used.get(before.buffer) === before.length &&
    before.buffer.byteLength >= length * Float64Array.BYTES_PER_ELEMENT;
  const { buffer } = hasRoom ? before : new Float64Array(2 * length);
  const out = new Float64Array(buffer, 0, length);
  if (!hasRoom) out.set(before);
  out.set(added, before.length);
  used.set(buffer, length);
  return out;
}

function join(before: ArrayLike<number>, after: ArrayLike<number>): Float64Array {
  const out = new Float64Array(before.length + after.length);
  out.set(before);
  out.set(after, before.length);
  return out;
}
