import { secondsOf, type Costs, type Load } from '../../contract/cost.ts';
import { fitNonNegative, predict } from './fitCosts.ts';
import type { Plan } from './plan.ts';

/** One measured step of an engine. */
export interface MeasuredStep extends Omit<Load, 'ranks' | 'steps'> {
  milliseconds: number;
  /** Steps of one shape have one number: the spread between them is the machine's, not the model's. */
  shape: number;
}

/** What a whole run took, beside what it asked for. */
export interface MeasuredRun {
  load: Load;
  milliseconds: number;
}

export interface CalibrationOptions {
  /** Every bin is computed as long as the longest: a bin's cost does not depend on its positions. */
  fixedShapes: boolean;
  /** Steps of differing numbers of bins were measured, so that a step costs apart from its bins. */
  accumulates: boolean;
  /** Share of the time in which other programs waited for the processor meanwhile, 0 … 1; default 0. */
  contention?: number;
}

/** Nine in ten of what is normally distributed lie within so many standard deviations. */
const nineInTen = 1.65;
/** A wider error says no more. */
const widest = 0.9;
/** What a few seconds cannot show of how a machine's speed wanders, one standard deviation: fans, clocks, neighbours. */
const unseenDrift = { shared: 0.05, device: 0.02 };
/** A forecast from fewer shapes than the model has terms extrapolates. */
export const fewestShapes = 4;
const extrapolation = 0.2;
/** Rounds from which on one that stands out is told from the others. */
const fewestRounds = 3;

const terms = ['steps', 'bins', 'positions', 'tokens', 'squares'] as const;
type Term = (typeof terms)[number];

/**
 * milliseconds = steps × a + bins × b + positions × c + tokens × d + squares × e, each factor at least 0, fitted to the
 * mean of each measured shape. Tokens cost apart from positions because padding passes no head; squares are attention.
 * The error stated joins what the fit misses of a shape left out, the spread between rounds of the same steps, and the
 * drift that a short measurement cannot see. Returns undefined where nothing usable was measured.
 */
export function calibrate(measured: readonly MeasuredStep[], options: CalibrationOptions): Costs | undefined {
  const usable = measured.filter(({ positions, milliseconds }) => positions > 0 && milliseconds > 0);
  if (usable.length === 0) return undefined;
  const steps = options.fixedShapes ? withoutPauses(usable) : usable;
  const used = termsOf(options);
  const shapes = [...Map.groupBy(steps, ({ shape }) => shape).values()].map((group) => ({
    row: used.map((term) => (term === 'steps' ? 1 : (group[0]?.[term] ?? 0))),
    milliseconds: mean(group.map(({ milliseconds }) => milliseconds)),
  }));
  const { factors } = fitShapes(shapes);
  const factor = (term: Term) => (used.includes(term) ? (factors[used.indexOf(term)] ?? 0) : 0);
  const drift = options.fixedShapes ? unseenDrift.device : unseenDrift.shared;
  const deviations = [
    missed(shapes),
    spread(steps),
    drift,
    0.2 * (options.contention ?? 0),
    shapes.length < fewestShapes ? extrapolation : 0,
  ];
  return {
    millisecondsPerStep: factor('steps'),
    millisecondsPerBin: factor('bins'),
    millisecondsPerPosition: factor('positions'),
    millisecondsPerToken: factor('tokens'),
    millisecondsPerSquare: factor('squares'),
    relativeError: Math.min(widest, nineInTen * Math.hypot(...deviations)),
    measuredSteps: steps.length,
    runs: 0,
  };
}

/**
 * What runs of the same kind say about a calibration, the newest first: how the terms relate stays, how fast the machine
 * is comes from the runs, the newer the heavier, and from several of them how far one strays from the next.
 */
export function confirm(costs: Costs, runs: readonly MeasuredRun[]): Costs {
  const logs = runs.map(({ load, milliseconds }) =>
    Math.log(milliseconds / (secondsOf(costs, load).seconds * 1000)),
  );
  if (logs.length === 0 || !logs.every(Number.isFinite)) return costs;
  const weights = logs.map((_, age) => 0.7 ** age);
  const weighted = (values: number[]) =>
    values.reduce((sum, value, i) => sum + value * (weights[i] ?? 0), 0) / weights.reduce((a, b) => a + b);
  const center = weighted(logs);
  const scale = Math.exp(center);
  const strays = Math.sqrt(
    weighted(logs.map((log) => (log - center) ** 2)) * (logs.length / (logs.length - 1)),
  );
  // A single run says nothing of the next one's deviation. What it deviates from the measurement does.
  const seen = logs.length > 1 ? strays : Math.abs(center) / 3;
  const { relativeError } = costs;
  const own = relativeError / nineInTen / Math.sqrt(logs.length + 1);
  return {
    ...costs,
    millisecondsPerStep: costs.millisecondsPerStep * scale,
    millisecondsPerBin: costs.millisecondsPerBin * scale,
    millisecondsPerPosition: costs.millisecondsPerPosition * scale,
    millisecondsPerToken: costs.millisecondsPerToken * scale,
    millisecondsPerSquare: costs.millisecondsPerSquare * scale,
    relativeError: Math.min(widest, nineInTen * Math.hypot(own, seen)),
    runs: logs.length,
  };
}

/** What a plan asks of an engine. */
export function loadOf(plan: Plan): Required<Load> {
  const { steps, bins, tokens, ranks, positionsTotal: positions } = plan;
  return { steps, bins, positions, tokens, ranks, squares: sumOfSquares(plan.positions ?? plan.length) };
}

export function sumOfSquares(values: Int32Array): number {
  let sum = 0;
  for (const value of values) sum += value * value;
  return sum;
}

/** Share of the bins' positions that hold tokens. */
export function fill({ tokens, bins, budget }: Pick<Plan, 'tokens' | 'bins' | 'budget'>): number {
  return tokens / (bins * budget);
}

function termsOf({ fixedShapes, accumulates }: CalibrationOptions): Term[] {
  // With one bin a step the two cannot be told apart, and need not be.
  return terms.filter((term) => (term !== 'steps' || accumulates) && (term !== 'positions' || !fixedShapes));
}

/**
 * Of steps of one shape, without those that took more than twice the middle one: the host stood still while each was
 * waited for, which a device with others in flight does not feel.
 */
function withoutPauses(steps: readonly MeasuredStep[]): MeasuredStep[] {
  return [...Map.groupBy(steps, ({ shape }) => shape).values()].flatMap((group) => {
    const sorted = group.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
    const middle = sorted[(sorted.length - 1) >> 1] ?? 0;
    return group.length < fewestRounds
      ? group
      : group.filter(({ milliseconds }) => milliseconds <= 2 * middle);
  });
}

interface Shape {
  row: number[];
  milliseconds: number;
}

function fitShapes(shapes: readonly Shape[]) {
  return fitNonNegative(
    shapes.map(({ row }) => row),
    shapes.map(({ milliseconds }) => milliseconds),
  );
}

/** How far the fit of all other shapes misses each one, weighted by its milliseconds, as a run's time is. */
function missed(shapes: readonly Shape[]): number {
  if (shapes.length < 3) return 0;
  let squares = 0;
  let total = 0;
  shapes.forEach(({ row, milliseconds }, left) => {
    const { factors } = fitShapes(shapes.filter((_, i) => i !== left));
    squares += (predict(row, factors) - milliseconds) ** 2;
    total += milliseconds ** 2;
  });
  return Math.sqrt(squares / total);
}

/**
 * One standard deviation of a run's speed, relative. What strays from step to step averages out over a run, what strays
 * from round to round does not; of few rounds the first is a hint of the second.
 */
function spread(steps: readonly MeasuredStep[]): number {
  const rounds = new Map<number, number[]>();
  let squares = 0;
  let degrees = 0;
  for (const group of Map.groupBy(steps, ({ shape }) => shape).values()) {
    const center = mean(group.map(({ milliseconds }) => milliseconds));
    group.forEach(({ milliseconds }, round) => {
      squares += (milliseconds / center - 1) ** 2;
      rounds.set(round, [...(rounds.get(round) ?? []), milliseconds / center]);
    });
    degrees += group.length - 1;
  }
  if (degrees === 0) return 0.1;
  const speeds = [...rounds.values()].map(mean);
  const freedom = Math.max(1, speeds.length - 1);
  const between = Math.sqrt(speeds.reduce((sum, speed) => sum + (speed - 1) ** 2, 0) / freedom);
  // The measured mean strays as the run will, and of few rounds the spread itself is badly known.
  const widening = Math.sqrt(1 + 1 / speeds.length) * (1 + 0.5 / freedom);
  return Math.max(between * widening, 0.5 * Math.sqrt(squares / degrees));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
