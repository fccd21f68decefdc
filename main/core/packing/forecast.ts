import type { Plan } from './plan.ts';

/** One measured step of an engine: bins, positions and milliseconds over all of its micro-batches. */
export interface MeasuredStep {
  bins: number;
  positions: number;
  milliseconds: number;
}

/** What a step costs on one device with one set of kernels, learnt from measured steps. */
export interface CostModel {
  millisecondsPerBin: number;
  millisecondsPerPosition: number;
  /** Typical relative deviation of a whole run's forecast: the slow drift of a machine, which no average removes. */
  relativeError: number;
  measuredSteps: number;
}

export interface Forecast {
  steps: number;
  tokens: number;
  /** Tokens ÷ (bins × budget). */
  fill: number;
  /** Absent where nothing was measured yet. */
  seconds?: number;
  errorSeconds?: number;
}

/**
 * Fits milliseconds = bins × a + positions × b by least squares, neither negative. The first step of a run warms up
 * caches and is left out. Without two steps of differing shape all cost is laid on the positions.
 * Returns undefined where nothing usable was measured.
 */
export function calibrate(measured: readonly MeasuredStep[]): CostModel | undefined {
  const steps = (measured.length > 3 ? measured.slice(1) : measured).filter(
    ({ positions, milliseconds }) => positions > 0 && milliseconds > 0,
  );
  if (steps.length === 0) return undefined;
  const total = (f: (step: MeasuredStep) => number) => steps.reduce((sum, step) => sum + f(step), 0);
  const [bb, bp, pp] = [
    total((s) => s.bins ** 2),
    total((s) => s.bins * s.positions),
    total((s) => s.positions ** 2),
  ];
  const [bm, pm] = [total((s) => s.bins * s.milliseconds), total((s) => s.positions * s.milliseconds)];
  const determinant = bb * pp - bp * bp;
  let perBin = determinant > 1e-9 * bb * pp ? (bm * pp - pm * bp) / determinant : 0;
  let perPosition = (pm - perBin * bp) / pp;
  if (perBin < 0) [perBin, perPosition] = [0, pm / pp];
  if (perPosition < 0) [perBin, perPosition] = [bm / bb, 0];
  return {
    millisecondsPerBin: perBin,
    millisecondsPerPosition: perPosition,
    relativeError: drift(steps, (s) => s.bins * perBin + s.positions * perPosition),
    measuredSteps: steps.length,
  };
}

/** Steps, tokens, fill and, with a cost model, the time of a plan (per rank: ranks work side by side). */
export function forecast(plan: Plan, model?: CostModel): Forecast {
  const counts = { steps: plan.steps, tokens: plan.tokens, fill: fill(plan) };
  if (!model) return counts;
  const milliseconds =
    (plan.bins * model.millisecondsPerBin + plan.positionsTotal * model.millisecondsPerPosition) / plan.ranks;
  const seconds = milliseconds / 1000;
  return { ...counts, seconds, errorSeconds: seconds * model.relativeError };
}

/** Share of the bins' positions that hold tokens. */
export function fill({ tokens, bins, budget }: Pick<Plan, 'tokens' | 'bins' | 'budget'>): number {
  return tokens / (bins * budget);
}

// Errors of single steps average out over a run, drifts do not: compare sums over tenths of what was measured.
function drift(steps: readonly MeasuredStep[], predict: (step: MeasuredStep) => number): number {
  const size = Math.max(1, Math.ceil(steps.length / 10));
  let squares = 0;
  let groups = 0;
  for (let from = 0; from < steps.length; from += size, groups++) {
    const group = steps.slice(from, from + size);
    const took = group.reduce((sum, step) => sum + step.milliseconds, 0);
    squares += (group.reduce((sum, step) => sum + predict(step), 0) / took - 1) ** 2;
  }
  return groups > 1 ? Math.sqrt(squares / (groups - 1)) : 0.25;
}
