import { throttleReasons, type TelemetrySeries } from '../../../../main/contract/telemetry.ts';
import { placeOfStep, type LiveSeries } from '../liveSeries.ts';

/** Steps and when each was taken, UTC milliseconds, in the order of the steps. */
export interface StepTimes {
  steps: ArrayLike<number>;
  x: ArrayLike<number>;
}

/**
 * What the machine said while a run trained, on the axis that the run's curves are drawn over: a moment between two
 * steps lies between their places. What was said before the first step and after the last belongs to those.
 * @param scale of the values: 100 makes shares per cent
 */
export function onRunAxis(
  telemetry: TelemetrySeries,
  times: StepTimes,
  curve: LiveSeries,
  scale = 1,
): LiveSeries {
  const steps = Float64Array.from(telemetry.atMs, (at) => stepAtTime(times, at));
  const scaled = (values: Float64Array) => values.map((value) => value * scale);
  return {
    steps,
    x: steps.map((step) => placeOfStep(curve, step)),
    minimum: scaled(telemetry.minimum),
    maximum: scaled(telemetry.maximum),
    mean: scaled(telemetry.mean),
    numNonFinite: new Float64Array(steps.length),
  };
}

/** Where a GPU's clocks were held down on that axis, and by what; for each point as it is drawn. */
export function throttledStretches(throttle: TelemetrySeries | undefined, drawn: LiveSeries) {
  const stretches: { from: number; to: number }[] = [];
  const reasons = new Set<string>();
  if (throttle === undefined) return { stretches, reasons: [] };
  let isOpen = false;
  for (let i = 0; i < throttle.maximum.length; i += 1) {
    const why = throttleReasons(throttle.maximum[i] ?? 0);
    for (const reason of why) reasons.add(reason);
    const x = drawn.x[i] ?? 0;
    const last = stretches.at(-1);
    if (why.length > 0 && isOpen && last !== undefined) last.to = x;
    else if (why.length > 0) stretches.push({ from: x, to: x });
    isOpen = why.length > 0;
  }
  return { stretches, reasons: [...reasons] };
}

/** A clock that was set back makes times fall: the search then finds one of the places that it names. */
function stepAtTime({ steps, x }: StepTimes, at: number): number {
  const { length } = steps;
  if (length === 0) return 0;
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((x[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return steps[0] ?? 0;
  if (low === length) return steps[length - 1] ?? 0;
  const [before, after] = [x[low - 1] ?? 0, x[low] ?? 0];
  const [first, next] = [steps[low - 1] ?? 0, steps[low] ?? 0];
  return after === before ? next : first + ((at - before) / (after - before)) * (next - first);
}
