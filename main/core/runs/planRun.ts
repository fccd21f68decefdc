import { createHash } from 'node:crypto';
import { TesseraError } from '../../contract/errors.ts';
import type { Recipe } from '../../contract/recipe.ts';
import type { RunPlan } from '../../contract/runs.ts';
import { fill, loadOf } from '../packing/forecast.ts';
import { planPacking, type PackingOptions, type Plan } from '../packing/plan.ts';
import { Random } from '../random.ts';

/** A token cache as planning sees it; one entry an example. */
export interface TokenSource {
  /** The cache's folder. */
  folder: string;
  /** Its content hash. */
  key: string;
  /** Hash of the files that were imported. */
  datasetHash: string;
  lengths: Int32Array;
  /** Index of the first target, -1 where there is none. */
  firstTarget: Int32Array;
  isText: Uint8Array;
}

export interface PlannedRun {
  train: Plan;
  evaluation?: Plan;
  source: TokenSource;
  evalSource: TokenSource;
  summary: RunPlan;
  planHash: string;
}

export interface PlanOptions {
  /** Devices that share each step. */
  ranks?: number;
  /** Uses this many examples only, drawn by the recipe's seed. */
  maxExamples?: number;
  /** Where the held-out examples come from, if not from the same source. */
  evalSource?: TokenSource | undefined;
}

/**
 * Decides every step of a run before it starts: which examples are held out, what stands in which bin, and how many
 * steps there are. The same recipe and data give the same plan everywhere.
 * @throws {TesseraError} `nothingHeldOut` and what packing refuses
 */
export function planRun(recipe: Recipe, source: TokenSource, options: PlanOptions = {}): PlannedRun {
  const { ranks = 1, maxExamples = Infinity, evalSource } = options;
  const all = draw(allOf(source), maxExamples, recipe.seed);
  const { trained, heldOut } = evalSource ? { trained: all, heldOut: allOf(evalSource) } : split(recipe, all);
  const train = packUntil(recipe, source, trained, ranks);
  const evaluation =
    heldOut.length === 0
      ? undefined
      : pack(evalSource ?? source, heldOut, { ...packingOf(recipe), strategy: 'bfd', ranks });
  const { strategy, budget, bins, steps, tokens, positionsTotal, dropped, truncated } = train;
  const summary = {
    ...{ strategy, budget, bins, steps, tokens, truncated },
    examples: trained.length,
    evalExamples: heldOut.length,
    positions: positionsTotal,
    squares: loadOf(train).squares,
    fill: fill(train),
    dropped: { overlong: dropped.overlong, nothingToLearn: dropped.nothingToLearn },
  };
  return {
    train,
    ...(evaluation && { evaluation }),
    source,
    evalSource: evalSource ?? source,
    summary,
    planHash: hashPlan(train),
  };
}

function packingOf({ packing, gradAccumulation }: Recipe): Omit<PackingOptions, 'epochs' | 'ranks'> {
  const { budget, strategy, seed, overlong } = packing;
  return { budget, strategy, seed, gradAccumulation, ...(overlong && { overlong }) };
}

function allOf(source: TokenSource): Int32Array {
  return Int32Array.from(source.lengths, (_, index) => index);
}

function draw(examples: Int32Array, most: number, seed: number): Int32Array {
  if (examples.length <= most) return examples;
  const drawStream = 0x6472_6177;
  return new Random(seed, drawStream).shuffle(examples).slice(0, most).sort();
}

/** A share of the examples, drawn by seed, is held out: at least one where a share is asked for. */
function split(
  { evalShare = 0, seed }: Recipe,
  all: Int32Array,
): { trained: Int32Array; heldOut: Int32Array } {
  if (evalShare === 0) return { trained: all, heldOut: new Int32Array(0) };
  if (all.length < 2) {
    throw new TesseraError(
      'nothingHeldOut',
      `of ${all.length} example none can be held out`,
      'Leave evalShare out, or import more.',
    );
  }
  const heldOutStream = 0x6576_616c;
  const shuffled = new Random(seed, heldOutStream).shuffle(all.slice());
  const count = Math.min(all.length - 1, Math.max(1, Math.round(all.length * evalShare)));
  return { heldOut: shuffled.slice(0, count).sort(), trained: shuffled.slice(count).sort() };
}

/** Packs whole epochs; where the recipe counts steps, as many as they need, and cuts the plan after the last step. */
function packUntil(recipe: Recipe, source: TokenSource, examples: Int32Array, ranks: number): Plan {
  const options = { ...packingOf(recipe), ranks };
  if (recipe.steps === undefined) return pack(source, examples, { ...options, epochs: recipe.epochs ?? 1 });
  const wantedBins = recipe.steps * recipe.gradAccumulation * ranks;
  let epochs = 1;
  let plan = pack(source, examples, { ...options, epochs });
  while (plan.bins < wantedBins) {
    epochs = Math.max(epochs + 1, Math.ceil((epochs * wantedBins) / plan.bins));
    plan = pack(source, examples, { ...options, epochs });
  }
  return cutPlan(plan, wantedBins);
}

function cutPlan(plan: Plan, bins: number): Plan {
  const placements = plan.binOffsets[bins] ?? 0;
  const length = plan.length.slice(0, placements);
  const positions = plan.positions?.slice(0, placements);
  const sum = (values: Int32Array) => values.reduce((total, value) => total + value, 0);
  return {
    ...plan,
    example: plan.example.slice(0, placements),
    start: plan.start.slice(0, placements),
    length,
    ...(positions && { positions }),
    binOffsets: plan.binOffsets.slice(0, bins + 1),
    bins,
    steps: bins / (plan.ranks * plan.gradAccumulation),
    tokens: sum(length),
    positionsTotal: sum(positions ?? length),
  };
}

/** Packs some examples of a source; the plan names them by their index in the source. */
function pack(source: TokenSource, examples: Int32Array, options: PackingOptions): Plan {
  const plan = planPacking({
    ...options,
    lengths: examples.map((index) => source.lengths[index] ?? 0),
    firstTarget: examples.map((index) => source.firstTarget[index] ?? -1),
    isText: Uint8Array.from(examples, (index) => source.isText[index] ?? 0),
  });
  return { ...plan, example: plan.example.map((index) => examples[index] ?? 0) };
}

function hashPlan({ example, start, length, positions, binOffsets }: Plan): string {
  const hash = createHash('sha256');
  for (const part of [example, start, length, positions ?? length, binOffsets]) {
    hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  return hash.digest('hex');
}
