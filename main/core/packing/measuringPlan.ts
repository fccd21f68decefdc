import { Random } from '../random.ts';
import type { MeasuredStep } from './forecast.ts';
import { sumOfSquares } from './forecast.ts';
import type { Plan } from './plan.ts';

/** A plan of steps that differ in all that a step's cost depends on, the smallest first. */
export interface MeasuringPlan extends Pick<Plan, 'example' | 'start' | 'length' | 'binOffsets'> {
  positions: Int32Array;
  budget: number;
  strategy: string;
  seed: number;
  /** Of each bin, what a step of it alone is made of. */
  shapes: Omit<MeasuredStep, 'milliseconds'>[];
  /** Bins of a step, as the engine is to take them. */
  gradAccumulation: number;
  /** So many steps at the beginning are for a slow device, of which few others can be timed. */
  numSmall: number;
}

/** Positions of the first small step, and by how much each is larger than the one before. */
const smallest = 128;
const growth = 4;

/** Placements looked at: enough for every length that there is. */
const mostPlacements = 4096;

/**
 * Steps to time, made of a plan's own placements: full bins of short, of long and of mixed examples, emptier ones, one
 * example alone, and bins with padding. With `accumulates` two bins make a step and the last one is alone, so that what
 * an update costs shows beside what a bin costs. A device whose steps take as long as they have positions begins with
 * small ones: however large the budget, its first is soon done, and its time says which others are worth waiting for.
 * @param firstTarget of each example where the device is such a one: what is cut for a small step has one in it
 */
export function measuringPlan(plan: Plan, accumulates: boolean, firstTarget?: Int32Array): MeasuringPlan {
  const { budget } = plan;
  const count = Math.min(plan.length.length, mostPlacements);
  const mixed = new Random(plan.seed, 0x6d65_6173).shuffle(Int32Array.from({ length: count }, (_, i) => i));
  const sorted = mixed.slice().sort((a, b) => (plan.length[a] ?? 0) - (plan.length[b] ?? 0));
  const take = (order: Int32Array, room: number, pads = false) => takeUntil(plan.length, order, room, pads);
  const longest = sorted.slice().reverse();
  const bins = [
    take(mixed, budget / 8),
    take(sorted.subarray(count >> 2), budget / 4),
    take(mixed, budget / 3, true),
    take(longest.subarray(0, 1), budget),
    take(mixed.slice().reverse(), budget / 2),
    take(mixed, (budget * 3) / 4, true),
    take(longest, (budget * 3) / 4),
    take(mixed, budget),
  ].filter(({ items }) => items.length > 0);
  const small = firstTarget === undefined ? [] : smallBins(plan, sorted, firstTarget);
  const inOrder = accumulates
    ? [...small.flatMap((bin) => [bin, bin]), ...pairs(bins)]
    : [...small, ...unlike(bins)];
  return { ...assemble(plan, inOrder, accumulates ? 2 : 1), numSmall: small.length };
}

/** Of the shortest examples; where even one is too long, a part of it around its first target. */
function smallBins({ example, start, length, budget }: Plan, sorted: Int32Array, firstTarget: Int32Array) {
  const bins: Bin[] = [];
  for (let room = smallest; room < budget / 16; room *= growth) {
    const whole = takeUntil(length, sorted, room, false);
    const [first = 0] = whole.items;
    const has = length[first] ?? 0;
    if (has <= room) {
      bins.push(whole);
      continue;
    }
    const target = (firstTarget[example[first] ?? 0] ?? 0) - (start[first] ?? 0);
    const from = Math.min(Math.max(0, target - room / 2), has - room);
    // A step that teaches nothing is refused; a later piece of an example may not hold its first target.
    if (target > 0 && target < has) bins.push({ ...whole, part: { from, length: room } });
  }
  return bins;
}

/** Every bin once for each rank: a step then costs what the bins of one of them cost, and what joining them does. */
export function alikeForRanks(plan: MeasuringPlan, ranks: number): MeasuringPlan {
  if (ranks === 1) return plan;
  const order: number[] = [];
  const binOffsets = [0];
  for (let bin = 0; bin + 1 < plan.binOffsets.length; bin++)
    for (let rank = 0; rank < ranks; rank++) {
      for (let at = plan.binOffsets[bin] ?? 0; at < (plan.binOffsets[bin + 1] ?? 0); at++) order.push(at);
      binOffsets.push(order.length);
    }
  const pick = (values: Int32Array) => Int32Array.from(order, (at) => values[at] ?? 0);
  const { example, start, length, positions } = plan;
  return {
    ...plan,
    ...{ example: pick(example), start: pick(start), length: pick(length), positions: pick(positions) },
    binOffsets: Int32Array.from(binOffsets),
  };
}

interface Bin {
  items: number[];
  /** Every item is computed as long as the longest. */
  pads: boolean;
  /** All that is taken of its only item. */
  part?: { from: number; length: number };
}

/** Takes items in order while they fit. Without one that fits it is the order's first. */
function takeUntil(lengths: Int32Array, order: Int32Array, room: number, pads: boolean): Bin {
  const items: number[] = [];
  let used = 0;
  let longest = 0;
  for (const item of order) {
    const length = lengths[item] ?? 0;
    const widest = Math.max(longest, length);
    if ((pads ? widest * (items.length + 1) : used + length) > room) continue;
    items.push(item);
    used += length;
    longest = widest;
  }
  return { items: items.length > 0 ? items : [...order.subarray(0, 1)], pads };
}

/** The smallest first; of two that are the same one. */
function unlike(bins: Bin[]): Bin[] {
  const seen = new Map(bins.map((bin) => [JSON.stringify(bin), bin]));
  return [...seen.values()];
}

/** Each with the next and each with the third after it, and the fullest alone at the end. */
function pairs(bins: Bin[]): Bin[] {
  const partner = (by: number) => bins.flatMap((bin, i) => [bin, bins[(i + by) % bins.length] ?? bin]);
  return [...partner(1), ...partner(3), ...bins.slice(-1)];
}

function assemble(plan: Plan, bins: Bin[], gradAccumulation: number): Omit<MeasuringPlan, 'numSmall'> {
  const items = bins.flatMap((bin) => bin.items);
  const length = Int32Array.from(
    bins.flatMap(({ items, part }) => items.map((item) => part?.length ?? plan.length[item] ?? 0)),
  );
  const start = Int32Array.from(
    bins.flatMap(({ items, part }) => items.map((item) => (plan.start[item] ?? 0) + (part?.from ?? 0))),
  );
  const positions = length.slice();
  const binOffsets = new Int32Array(bins.length + 1);
  const shapes = bins.map((bin, i) => {
    const from = binOffsets[i] ?? 0;
    const to = (binOffsets[i + 1] = from + bin.items.length);
    const computed = positions.subarray(from, to);
    if (bin.pads) computed.fill(computed.reduce((a, b) => Math.max(a, b), 0));
    const sum = (values: Int32Array) => values.reduce((a, b) => a + b, 0);
    return {
      ...{ bins: 1, shape: i, positions: sum(computed), squares: sumOfSquares(computed) },
      tokens: sum(length.subarray(from, to)),
    };
  });
  return {
    example: Int32Array.from(items, (item) => plan.example[item] ?? 0),
    ...{ start, length, positions, binOffsets, shapes, gradAccumulation },
    ...{ budget: plan.budget, strategy: plan.strategy, seed: plan.seed },
  };
}

/** What each step of a pass is made of. */
export function stepsOfPass({
  shapes,
  gradAccumulation,
}: MeasuringPlan): Omit<MeasuredStep, 'milliseconds'>[] {
  const steps: Omit<MeasuredStep, 'milliseconds'>[] = [];
  for (let from = 0; from < shapes.length; from += gradAccumulation) {
    const parts = shapes.slice(from, from + gradAccumulation);
    const sum = (name: 'bins' | 'positions' | 'tokens' | 'squares') =>
      parts.reduce((total, part) => total + part[name], 0);
    steps.push({
      shape: steps.length,
      ...{ bins: sum('bins'), positions: sum('positions'), tokens: sum('tokens'), squares: sum('squares') },
    });
  }
  return steps;
}
