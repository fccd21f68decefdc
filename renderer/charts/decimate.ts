/** Columns of equal length; where blocks of steps were merged, their extremes and mean. */
export interface SeriesColumns {
  steps: ArrayLike<number>;
  /** Places on the axis, rising. */
  x: ArrayLike<number>;
  /** NaN where a point holds no number at all. */
  minimum: ArrayLike<number>;
  maximum: ArrayLike<number>;
  mean: ArrayLike<number>;
  /** How many of a point's values are NaN or infinite: drawn as a gap with a mark. */
  numNonFinite: ArrayLike<number>;
}

/** What of the axis is drawn, on how many pixels. */
export interface ChartView {
  widthPx: number;
  from: number;
  to: number;
}

/** What is drawn of a series: a point a pixel column at most. */
export interface DrawnColumns {
  x: number[];
  /** Of the line's own values; NaN where there is none. */
  value: number[];
  minimum: number[];
  maximum: number[];
  numNonFinite: number[];
  /** Points were merged, or came merged: minimum and maximum say more than the line. */
  hasRange: boolean;
}

/** Up to so many points a pixel they are drawn one by one. */
const pointsPerPixel = 2;

/**
 * The part of a series in `view`, and one point beyond it on each side so that lines leave the picture at its edge. Where
 * points lie denser than pixels, those of one pixel column become one: their extremes, and the mean of `values`. No
 * extreme is ever lost, and a column with a value that is no number says so.
 * @param values what the line follows, as long as the series: its means, or these smoothed
 */
export function decimate(series: SeriesColumns, values: ArrayLike<number>, view: ChartView): DrawnColumns {
  const { x } = series;
  const begin = Math.max(0, firstAtLeast(x, view.from) - 1);
  const end = Math.min(x.length, firstAfter(x, view.to) + 1);
  const out: DrawnColumns = {
    ...{ x: [], value: [], minimum: [], maximum: [], numNonFinite: [] },
    hasRange: false,
  };
  const isDense = end - begin > pointsPerPixel * view.widthPx && view.to > view.from;
  const scale = view.widthPx / (view.to - view.from);
  const columnOf = (i: number) => Math.floor(((x[i] ?? 0) - view.from) * scale);
  for (let i = begin; i < end;) {
    let next = i + 1;
    if (isDense) {
      const column = columnOf(i);
      while (next < end && columnOf(next) === column) next += 1;
    }
    merge(series, values, i, next, out);
    i = next;
  }
  return out;
}

function merge(
  series: SeriesColumns,
  values: ArrayLike<number>,
  begin: number,
  end: number,
  out: DrawnColumns,
): void {
  let [low, high, sum, count, numNonFinite] = [Infinity, -Infinity, 0, 0, 0];
  for (let i = begin; i < end; i += 1) {
    const [minimum, maximum, value] = [series.minimum[i], series.maximum[i], values[i]];
    if (minimum !== undefined && Number.isFinite(minimum)) low = Math.min(low, minimum);
    if (maximum !== undefined && Number.isFinite(maximum)) high = Math.max(high, maximum);
    if (value !== undefined && Number.isFinite(value)) {
      sum += value;
      count += 1;
    }
    numNonFinite += series.numNonFinite[i] ?? 0;
  }
  const isSomething = low <= high;
  out.x.push(((series.x[begin] ?? 0) + (series.x[end - 1] ?? 0)) / 2);
  out.value.push(count > 0 ? sum / count : Number.NaN);
  out.minimum.push(isSomething ? low : Number.NaN);
  out.maximum.push(isSomething ? high : Number.NaN);
  out.numNonFinite.push(numNonFinite);
  if (isSomething && low < high) out.hasRange = true;
}

/** The first index whose value is `least` or more; the length where there is none. */
export function firstAtLeast(rising: ArrayLike<number>, least: number): number {
  return firstWhere(rising, (value) => value >= least);
}

function firstAfter(rising: ArrayLike<number>, most: number): number {
  return firstWhere(rising, (value) => value > most);
}

function firstWhere(rising: ArrayLike<number>, isFar: (value: number) => boolean): number {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isFar(rising[middle] ?? 0)) high = middle;
    else low = middle + 1;
  }
  return low;
}
