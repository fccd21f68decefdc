import { describe, expect, it } from 'vitest';
import type { TelemetrySeries } from '../../../main/contract/telemetry.ts';
import { onRunAxis, throttledStretches } from '../../../renderer/views/run/telemetry/onRunAxis.ts';

const curve = (steps: number[], x: number[]) => ({
  steps,
  x,
  ...{ minimum: x, maximum: x, mean: x, numNonFinite: x.map(() => 0) },
});
const said = (atMs: number[], values: number[]): TelemetrySeries => ({
  ...{ source: 'gpu0', field: 'utilization', atMs: Float64Array.from(atMs) },
  ...{
    minimum: Float64Array.from(values),
    maximum: Float64Array.from(values),
    mean: Float64Array.from(values),
  },
});

describe('what the machine said, on the axis of the run', () => {
  const times = { steps: [1, 2, 3], x: [1000, 2000, 6000] };

  it('lies between the steps that it was said between, on any axis', () => {
    const drawn = onRunAxis(
      said([500, 1500, 4000, 9000], [1, 2, 3, 4]),
      times,
      curve([1, 2, 3], [10, 20, 60]),
    );
    expect([...Array.from(drawn.steps)]).toEqual([1, 1.5, 2.5, 3]);
    expect([...Array.from(drawn.x)]).toEqual([10, 15, 40, 60]);
    expect([...Array.from(drawn.mean)]).toEqual([1, 2, 3, 4]);
  });

  it('makes shares per cent, and nothing of a run without steps or with one', () => {
    expect([...Array.from(onRunAxis(said([500], [0.25]), times, curve([], []), 100).mean)]).toEqual([25]);
    const one = onRunAxis(said([1, 2], [5, 6]), { steps: [1], x: [2] }, curve([1], [1]));
    expect([...Array.from(one.x)]).toEqual([1, 1]);
  });

  it('stays in its place where the clock was set back', () => {
    const drawn = onRunAxis(
      said([900, 100], [1, 2]),
      { steps: [1, 2, 3], x: [1000, 100, 200] },
      curve([1, 2, 3], [1, 2, 3]),
    );
    for (const x of Array.from(drawn.x)) expect(x).toBeGreaterThanOrEqual(1);
  });

  it('names the stretches in which something held the clocks back', () => {
    const drawn = onRunAxis(said([1000, 1500, 2000, 6000], [1, 1, 1, 1]), times, curve([1, 2, 3], [1, 2, 3]));
    const throttle = { ...said([1000, 1500, 2000, 6000], [0, 4, 4, 0]), field: 'throttleReasons' };
    expect(throttledStretches(throttle, drawn)).toEqual({
      stretches: [{ from: 1.5, to: 2 }],
      reasons: ['power cap'],
    });
    expect(throttledStretches(undefined, drawn)).toEqual({ stretches: [], reasons: [] });
  });
});
