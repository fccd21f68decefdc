import { counted } from '../../contract/counted.ts';
import { TesseraError } from '../../contract/errors.ts';
import { Random } from '../random.ts';
import { cutToBudget, type Examples, type Losses, type Overlong, type Pieces } from './pieces.ts';
import { STRATEGIES, type Bins, type Strategy } from './strategies.ts';

export interface PackingOptions {
  /** Positions that a bin may hold. */
  budget: number;
  strategy: Strategy;
  /** Orders come from it and from the epoch's number alone; default 0. */
  seed?: number;
  /** Passes over the examples, each with an order of its own where the strategy shuffles; default 1. */
  epochs?: number;
  /** Devices that share each step; default 1. */
  ranks?: number;
  /** Bins that each rank computes in a step; default 1. */
  gradAccumulation?: number;
  /** Default: chats are truncated, texts split. */
  overlong?: Overlong;
}

/**
 * Which part of which example stands where. Placement p is `length[p]` tokens of example `example[p]` from its token
 * `start[p]`; bin b holds placements `binOffsets[b] … binOffsets[b + 1]`. A step takes the next
 * `ranks × gradAccumulation` bins, rank r of them those whose number leaves r when divided by `ranks`; only the last
 * step may have fewer, and then equally many on each rank unless no bin of the last epoch could be cut in two: every
 * rank takes every step, those without a bin in it add nothing to it.
 */
export interface Plan extends Losses, Required<Omit<PackingOptions, 'overlong'>> {
  /** Examples given, dropped ones included; placements count pieces over all epochs. */
  examples: number;
  example: Int32Array;
  start: Int32Array;
  length: Int32Array;
  /** Positions computed for a placement, its padding included; absent where that is its length. */
  positions?: Int32Array;
  binOffsets: Int32Array;
  /** Totals over all epochs. */
  bins: number;
  steps: number;
  tokens: number;
  positionsTotal: number;
}

/** A budget beyond this is no step of any machine (and the search tables grow with it). */
const MAX_BUDGET = 2 ** 24;
/** Beyond this a plan takes minutes and gigabytes, while the core answers nobody. */
const MAX_PLACEMENTS = 2 ** 24;
/** An epoch costs as much as this many placements at least. */
const EPOCH_PLACEMENTS = 128;
const MAX_RANKS = 4096;

/**
 * Packs examples into bins. Time n log n at worst, memory a few integers an example; the same input gives the same
 * plan everywhere. Throws TesseraError for options out of range, no examples, or nothing left to learn.
 */
export function planPacking(input: Examples & PackingOptions): Plan {
  const options = checkOptions(input);
  const { strategy, budget, seed, epochs, ranks } = options;
  const { lengths } = input;
  if (lengths.length === 0) {
    throw new TesseraError(
      'noExamples',
      'there is no example to pack',
      'Import a dataset with a row to learn from: its problems name the rows that were left out.',
    );
  }
  const pieces = cutToBudget(input, budget, input.overlong);
  if (pieces.length.length === 0) throw nothingLeft(pieces, budget);
  const mostEpochs = Math.floor(MAX_PLACEMENTS / Math.max(pieces.length.length, EPOCH_PLACEMENTS));
  if (epochs > Math.max(1, mostEpochs)) {
    throw new TesseraError(
      'planTooLong',
      `${counted(epochs, 'epoch')} of ${counted(pieces.length.length, 'example')} are more than a plan holds`,
      `Give at most ${counted(Math.max(1, mostEpochs), 'epoch')}, or steps that need no more. What a run exports can be trained further.`,
    );
  }

  const { arrange, pads } = STRATEGIES[strategy];
  const packed = Array.from({ length: epochs }, (_, epoch) =>
    arrange(pieces.length, budget, new Random(seed, epoch)),
  );
  packed[epochs - 1] = fillRanks(packed, ranks);
  return assemble(pieces, packed, pads, { ...options, examples: lengths.length });
}

function checkOptions(input: PackingOptions) {
  const { budget, strategy, seed = 0, epochs = 1, ranks = 1, gradAccumulation = 1 } = input;
  if (!Object.hasOwn(STRATEGIES, strategy)) {
    const known = Object.keys(STRATEGIES).join(', ');
    throw new TesseraError(
      'unknownStrategy',
      `there is no packing strategy '${strategy}'`,
      `Known are: ${known}.`,
    );
  }
  if (!Number.isInteger(budget) || budget < 2 || budget > MAX_BUDGET) {
    throw new TesseraError(
      'badBudget',
      `the budget is ${counted(budget, 'token')}`,
      `Give a whole number from 2 (one token has none to predict) to ${MAX_BUDGET.toLocaleString('en')}.`,
    );
  }
  if (!Number.isSafeInteger(seed)) {
    throw new TesseraError('badSeed', `the seed is ${seed}`, 'Give a whole number.');
  }
  for (const [name, value] of Object.entries({ epochs, ranks, gradAccumulation })) {
    if (!Number.isInteger(value) || value < 1) {
      throw new TesseraError('badPackingOption', `${name} is ${value}`, 'Give a whole number from 1 up.');
    }
  }
  if (ranks > MAX_RANKS) {
    throw new TesseraError('badPackingOption', `ranks is ${ranks}`, `Give at most ${MAX_RANKS}.`);
  }
  return { budget, strategy, seed, epochs, ranks, gradAccumulation };
}

function nothingLeft({ dropped }: Losses, budget: number): TesseraError {
  const reasons = [
    dropped.overlong > 0
      ? `${dropped.overlong} ${dropped.overlong === 1 ? 'is' : 'are'} longer than the budget of ${budget} tokens`
      : '',
    dropped.nothingToLearn > 0
      ? `${dropped.nothingToLearn} ${dropped.nothingToLearn === 1 ? 'has' : 'have'} nothing to learn within it`
      : '',
  ];
  return new TesseraError(
    'nothingToLearn',
    `no example is left to train on: ${reasons.filter(Boolean).join(', ')}`,
    'Raise the budget, truncate instead of dropping, or supervise more of each chat.',
  );
}

/**
 * The last epoch with some bins cut in two, so that the bins of all epochs divide evenly among the ranks; bins of one
 * example stay as they are.
 */
function fillRanks(packed: Bins[], ranks: number): Bins {
  const last = packed.at(-1) as Bins;
  const total = packed.reduce((sum, { offsets }) => sum + offsets.length - 1, 0);
  const offsets = [...last.offsets];
  for (let missing = (ranks - (total % ranks)) % ranks; missing > 0; missing--) {
    let widest = 0;
    for (let bin = 0; bin + 1 < offsets.length; bin++) {
      if (sizeOf(offsets, bin) > sizeOf(offsets, widest)) widest = bin;
    }
    const size = sizeOf(offsets, widest);
    if (size < 2) break;
    offsets.splice(widest + 1, 0, (offsets[widest] as number) + (size >> 1));
  }
  const bins = total + offsets.length - last.offsets.length;
  if (bins < ranks) {
    throw new TesseraError(
      'tooManyRanks',
      `${bins} bins cannot be shared by ${ranks} ranks: some would never have work`,
      'Use fewer devices, more examples, or more epochs.',
    );
  }
  return { order: last.order, offsets: Int32Array.from(offsets) };
}

function sizeOf(offsets: ArrayLike<number>, bin: number): number {
  return (offsets[bin + 1] as number) - (offsets[bin] as number);
}

function assemble(
  pieces: Pieces,
  packed: Bins[],
  pads: boolean,
  options: Required<Omit<PackingOptions, 'overlong'>> & { examples: number },
): Plan {
  const order = concatenate(packed.map((bins) => bins.order));
  const bins = packed.reduce((sum, { offsets }) => sum + offsets.length - 1, 0);
  const binOffsets = new Int32Array(bins + 1);
  let bin = 0;
  let placed = 0;
  for (const { order: items, offsets } of packed) {
    for (let i = 1; i < offsets.length; i++) binOffsets[++bin] = placed + (offsets[i] as number);
    placed += items.length;
  }
  const length = order.map((piece) => pieces.length[piece] as number);
  const tokens = pieces.tokens * packed.length;
  const positions = pads ? padToLongest(length, binOffsets) : undefined;
  return {
    ...options,
    dropped: pieces.dropped,
    truncated: pieces.truncated,
    example: order.map((piece) => pieces.example[piece] as number),
    start: order.map((piece) => pieces.start[piece] as number),
    length,
    ...(positions && { positions }),
    binOffsets,
    bins,
    steps: Math.ceil(bins / (options.ranks * options.gradAccumulation)),
    tokens,
    positionsTotal: positions ? sum(positions) : tokens,
  };
}

function padToLongest(length: Int32Array, binOffsets: Int32Array): Int32Array {
  const positions = new Int32Array(length.length);
  for (let bin = 0; bin + 1 < binOffsets.length; bin++) {
    const [from, to] = [binOffsets[bin] as number, binOffsets[bin + 1] as number];
    positions.fill(
      length.subarray(from, to).reduce((a, b) => Math.max(a, b), 0),
      from,
      to,
    );
  }
  return positions;
}

function concatenate(parts: Int32Array[]): Int32Array {
  if (parts.length === 1) return parts[0] as Int32Array;
  const whole = new Int32Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function sum(values: Int32Array): number {
  return values.reduce((a, b) => a + b, 0);
}
