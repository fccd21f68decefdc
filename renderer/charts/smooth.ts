/**
 * Exponential moving average over an uneven axis: a value's weight halves every `halfLife` units of x, so that gaps
 * and merged blocks count for what they are. The start is corrected for its short history, gaps (NaN) are skipped.
 */
export function smooth(x: ArrayLike<number>, y: ArrayLike<number>, halfLife: number): Float64Array {
  const out = new Float64Array(y.length);
  if (halfLife <= 0) return Float64Array.from(y);
  let sum = 0;
  let weight = 0;
  let last = Number.NaN;
  for (let i = 0; i < y.length; i += 1) {
    const value = y[i] ?? Number.NaN;
    const at = x[i] ?? 0;
    if (Number.isFinite(value)) {
      const decay = Number.isNaN(last) ? 0 : 2 ** (-(at - last) / halfLife);
      sum = sum * decay + value * (1 - decay);
      weight = weight * decay + (1 - decay);
      last = at;
    }
    if (weight === 0 && Number.isFinite(value)) {
      // The first value has no history at all: it stands for itself.
      sum = value;
      weight = 1;
    }
    out[i] = weight > 0 ? sum / weight : Number.NaN;
  }
  return out;
}
