import { z } from 'zod';
import { call } from './channel.ts';
import { costModel } from './cost.ts';

export const strategyNames = ['padded', 'sorted', 'in-order', 'best-fit', 'ffd', 'bfd'] as const;
export const overlongNames = ['drop', 'truncate', 'split'] as const;

const packingOptions = z.object({
  /** Positions that a bin may hold. */
  budget: z.number(),
  strategy: z.enum(strategyNames).default('best-fit'),
  /** Absent: chats are truncated, texts split. */
  overlong: z.enum(overlongNames).optional(),
  seed: z.number().default(0),
  epochs: z.number().default(1),
  ranks: z.number().default(1),
  gradAccumulation: z.number().default(1),
});

/** A plan in numbers; tokens, positions, bins and steps are totals over all epochs. */
const packingSummary = z.object({
  strategy: z.enum(strategyNames),
  budget: z.int(),
  epochs: z.int(),
  ranks: z.int(),
  gradAccumulation: z.int(),
  /** Examples given, dropped ones included. */
  examples: z.int(),
  bins: z.int(),
  steps: z.int(),
  tokens: z.int(),
  /** What is really computed, padding included. */
  positions: z.int(),
  /** Sum over the placements of computed positions squared: what attention grows with. */
  squares: z.number(),
  /** tokens ÷ (bins × budget) */
  fill: z.number(),
  /** Time that packing took. */
  seconds: z.number(),
  orderBias: z.object({ withinBins: z.number(), betweenBins: z.number(), meaning: z.string() }),
  dropped: z.object({ overlong: z.int(), nothingToLearn: z.int(), tokens: z.int() }),
  truncated: z.object({ examples: z.int(), tokens: z.int() }),
});
export type PackingSummary = z.infer<typeof packingSummary>;

/** The plan itself, one entry a placement; bin b holds placements binOffsets[b] … binOffsets[b + 1]. */
const integers = z.instanceof<typeof Int32Array<ArrayBufferLike>>(Int32Array);
const packingLayout = z.object({
  example: integers,
  start: integers,
  length: integers,
  /** Positions computed for a placement, its padding included; absent where that is its length. */
  positions: integers.optional(),
  binOffsets: integers,
});
export type PackingLayout = z.infer<typeof packingLayout>;

/** What a picture needs of each example besides the plan. */
const packedExamples = z.object({
  /**
   * Tokens at which supervision changes, example after example: the first begins a supervised stretch, the next ends it,
   * and so on; an example's own are `flipOffsets[e]` … `flipOffsets[e + 1]`.
   */
  flips: integers,
  flipOffsets: integers,
  /** By example, an index into `sources`: the files, those with most examples first. */
  source: integers,
  sources: z.array(z.object({ path: z.string(), examples: z.int() })),
});
export type PackedExamples = z.infer<typeof packedExamples>;

export const packingChannels = {
  /** The real mask of every token, as stretches; refused (`tooManyStretches`) where they would not fit into memory. */
  'packing:examples': call({ args: z.object({ dataset: z.string() }), result: packedExamples }),
  /** Packs a dataset, given by id, or lengths in tokens (taken for chats). */
  'packing:plan': call({
    args: z.object({
      source: z.union([z.object({ dataset: z.string() }), z.object({ lengths: integers })]),
      options: packingOptions,
      withLayout: z.boolean().default(false),
      /** Of the layout, these bins from the first are enough. */
      mostBins: z.int().positive().optional(),
    }),
    result: z.object({
      summary: packingSummary,
      layout: packingLayout.optional(),
      /** With the whole layout: tokens of each whole example. */
      lengths: integers.optional(),
    }),
  }),
  /**
   * What training costs with the dataset's model and a budget on this machine's best device; `secondsOf` makes seconds
   * of it and a plan's summary. Where nothing is known and `measure` is set, steps are timed for a few seconds first.
   */
  'packing:cost': call({
    args: z.object({
      dataset: z.string(),
      budget: z.int().min(2),
      gradAccumulation: z.int().positive().default(1),
      measure: z.boolean().default(false),
    }),
    result: z.object({
      cost: costModel.optional(),
      /** Why there is none: it was not measured, or a run trains that the measurement would slow down. */
      why: z.string().optional(),
    }),
  }),
};
