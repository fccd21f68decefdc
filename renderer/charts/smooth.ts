/**
 * Exponential moving average over an uneven axis: a value's weight halves every `halfLife` units of x, so that gaps
 * and merged blocks count for what they are. Weights are normalised by their sum, so that the first values do not
 * stand for a past that was not there. Gaps (NaN) are skipped.
 */
export function smooth(x: ArrayLike<number>, y: ArrayLike<number>, halfLife: number): Float64Array {
  if (halfLife <= 0) return Float64Array.from(y);
  const out = new Float64Array(y.length);
  let sum = 0;
  let weight = 0;
  let last = (x[0] ?? 0) - ((x[1] ?? (x[0] ?? 0) + 1) - (x[0] ?? 0));
  for (let i = 0; i < y.length; i += 1) {
    const value = y[i] ?? Number.NaN;
    if (Number.isFinite(value)) {
      const decay = 2 ** (-((x[i] ?? last) - last) / halfLife);
      sum = sum * decay + value * (1 - decay);
      weight = weight * decay + (1 - decay);
      last = x[i] ?? last;
    }
    out[i] = weight > 0 ? sum / weight : Number.NaN;
  }
  return out;
}
