/** Time that the remaining steps take at the pace of the newest ones, in milliseconds; undefined before there is any. */
export function timeLeftMs(
  series: { mean: ArrayLike<number> },
  step: number,
  plannedSteps: number,
): number | undefined {
  const { mean } = series;
  const count = Math.min(20, mean.length);
  if (count === 0) return undefined;
  let sum = 0;
  for (let i = mean.length - count; i < mean.length; i += 1) sum += mean[i] ?? 0;
  return (sum / count) * Math.max(0, plannedSteps - step);
}
