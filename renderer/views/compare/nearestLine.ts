/** A line of a chart. */
export interface DrawnLine {
  id: string;
  name: string;
  color: string;
  x: number[];
  y: ArrayLike<number>;
}

const reachPixels = 24;

/**
 * The line whose value at `x` is drawn closest to the pointer, within `reachPixels`; a line that ends before is not
 * there. @param toPixels the height at which a value is drawn
 */
export function nearestLine(
  lines: DrawnLine[],
  x: number,
  pointerY: number,
  toPixels: (value: number) => number,
): string | undefined {
  let best: string | undefined;
  let least = reachPixels;
  for (const line of lines) {
    const value = valueAt(line, x);
    const away = value === undefined ? Infinity : Math.abs(toPixels(value) - pointerY);
    if (away <= least) [best, least] = [line.id, away];
  }
  return best;
}

/** Between two points in a straight line, as it is drawn. */
function valueAt({ x, y }: DrawnLine, at: number): number | undefined {
  const last = x.length - 1;
  if (last < 0 || at < (x[0] ?? Infinity) || at > (x[last] ?? -Infinity)) return undefined;
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((x[middle] ?? 0) <= at) low = middle;
    else high = middle;
  }
  const [x0 = 0, x1 = 0, y0 = Number.NaN, y1 = Number.NaN] = [x[low], x[high], y[low], y[high]];
  return x1 === x0 ? y0 : y0 + ((y1 - y0) * (at - x0)) / (x1 - x0);
}
