import { z } from 'zod';
import { call, stream, wiredCall } from './channel.ts';
import { runProfile } from './profile.ts';
import { deviceName, recipeSchema } from './recipe.ts';
import { isPacked, unpackRows, type FieldKind, type PackedRows } from './rows.ts';

export const runStatuses = ['queued', 'running', 'paused', 'completed', 'stopped', 'failed'] as const;
export type RunStatus = (typeof runStatuses)[number];

const id = z.string().min(1);
const loss = z.number();
/** Also NaN and the infinities, which `z.number()` refuses. */
const anyNumber = z.custom<number>((value) => typeof value === 'number', 'is no number');

/** One line of the history. Losses are token-weighted means over the first and last max(1, 5 %) of the steps. */
export const runSummary = z.object({
  id,
  name: z.string(),
  status: z.enum(runStatuses),
  /** Why it stopped or failed. */
  reason: z.string().optional(),
  /** Optimizer updates taken, of those planned. */
  steps: z.int(),
  plannedSteps: z.int(),
  firstLoss: loss.optional(),
  lastLoss: loss.optional(),
  evalLossBefore: loss.optional(),
  evalLossAfter: loss.optional(),
  /** Real tokens (no padding) per second of computing. */
  tokensPerSecond: z.number().optional(),
  createdAtMs: z.int(),
  startedAtMs: z.int().optional(),
  endedAtMs: z.int().optional(),
  archived: z.boolean(),
  /** Deleted runs wait some days before they are gone. */
  deletedAtMs: z.int().optional(),
  tags: z.array(z.string()),
  /** Training, evaluating and saving, pauses left out, by a clock that no one sets. */
  elapsedMs: z.number().default(0),
  /** Lowest held-out loss after a step. */
  bestLoss: loss.optional(),
  bestStep: z.int().optional(),
  strategy: z.string().optional(),
  peakLr: z.number().optional(),
  dataset: z.string().optional(),
  model: z.string().optional(),
  device: z.string().optional(),
  /** Real tokens ÷ (bins × budget). */
  fill: z.number().optional(),
});
export type RunSummary = z.infer<typeof runSummary>;

/** Texts of which nearly each run has another. */
const ownTexts = new Set(['id', 'name']);

/** What a list's columns hold, from the schema of one row: ten thousand rows are checked by column, not by value. */
export const summaryFields: readonly FieldKind[] = Object.entries(runSummary.shape).map(([name, field]) => {
  const isOptional = field instanceof z.ZodOptional;
  const inner = isOptional || field instanceof z.ZodDefault ? field.unwrap() : field;
  const common = { name, isOptional, isList: inner instanceof z.ZodArray };
  if (inner instanceof z.ZodNumber) return { ...common, kind: 'numbers' };
  if (inner instanceof z.ZodBoolean) return { ...common, kind: 'flags' };
  if (ownTexts.has(name)) return { ...common, kind: 'texts' };
  return { ...common, kind: 'words', ...(inner instanceof z.ZodEnum && { choices: runStatuses }) };
});
const packedSummaries = z.custom<PackedRows>(
  (value) => isPacked(value, summaryFields),
  'holds what is no summary of a run',
);

export const runHashes = z.object({
  recipe: z.string(),
  dataset: z.string(),
  cache: z.string(),
  plan: z.string(),
  /** Of the model folder's configuration and tensors; runs of older versions have none. */
  model: z.string().optional(),
});

/** What the plan holds: the packing's totals, and how many examples are held out. */
export const runPlan = z.object({
  strategy: z.string(),
  budget: z.int(),
  examples: z.int(),
  evalExamples: z.int(),
  bins: z.int(),
  steps: z.int(),
  tokens: z.int(),
  positions: z.int(),
  /** Sum over the placements of computed positions squared; older runs have none. */
  squares: z.number().optional(),
  fill: z.number(),
  dropped: z.object({ overlong: z.int(), nothingToLearn: z.int() }),
  truncated: z.object({ examples: z.int(), tokens: z.int() }),
});
export type RunPlan = z.infer<typeof runPlan>;

export const preflightItem = z.object({
  name: z.string(),
  status: z.enum(['pass', 'warn', 'stop']),
  message: z.string(),
  hint: z.string().optional(),
});
/** What the engine found when it ran a pack of the run's data with one example changed. */
export const isolationProof = z.object({
  ok: z.boolean(),
  device: z.string(),
  /** The examples that shared the pack, those that were changed, and those that a change reached; all from 0. */
  examples: z.array(z.int()),
  changed: z.array(z.int()),
  /** Absent in proofs of older versions, whose words count examples from 0 as well. */
  leaked: z.array(z.int()).optional(),
  positions: z.int(),
  /** Layers that were run, of the model's. */
  layers: z.int(),
  modelLayers: z.int(),
  /** One example alone against itself in the pack. */
  alone: z.object({ relativeError: z.number(), tolerance: z.number() }),
  failures: z.array(z.string()),
  message: z.string(),
  seconds: z.number(),
});

/** Every kernel of the device against fp64. */
export const numericsTest = z.object({
  ok: z.boolean(),
  device: z.string(),
  kernels: z.array(
    z.object({
      operation: z.string(),
      output: z.string(),
      relativeError: z.union([z.number(), z.string()]),
      tolerance: z.number(),
      ok: z.boolean(),
    }),
  ),
  failures: z.array(z.string()),
  message: z.string(),
  seconds: z.number(),
});

/** Which kernel serves an operation of a kind of layer, and why this one. */
export const kernelRow = z.object({
  layerKind: z.string(),
  operation: z.string(),
  forward: z.string(),
  backward: z.string(),
  tier: z.string(),
  reason: z.string(),
  /** Not the fast one: a run with it needs `acceptSlow`. */
  slow: z.boolean(),
});

export type KernelRow = z.infer<typeof kernelRow>;

export const preflight = z.object({
  ok: z.boolean(),
  items: z.array(preflightItem),
  steps: z.int(),
  /** Bytes by part, and `total`; empty where the data or the model could not be read. */
  memory: z.record(z.string(), z.number()),
  /** What the run's device has free; absent where that is not known. */
  memoryFreeBytes: z.number().optional(),
  /** Forecast of all steps' time with its error (nine in ten inside), from steps measured on this device. */
  seconds: z.number().optional(),
  errorSeconds: z.number().optional(),
  /** Of the run's device; runs of older versions have none. */
  kernels: z.array(kernelRow).optional(),
  isolation: isolationProof.optional(),
  numerics: numericsTest.optional(),
});
export type Preflight = z.infer<typeof preflight>;
export type PreflightItem = z.infer<typeof preflightItem>;

export const runEvent = z.object({
  atMs: z.int(),
  step: z.int().optional(),
  kind: z.string(),
  data: z.record(z.string(), z.unknown()),
});

/** Loss in nats per supervised token of the held-out examples, packed as in training; perplexity is its exponential. */
export const evaluation = z.object({
  step: z.int(),
  phase: z.string(),
  loss: anyNumber,
  perplexity: anyNumber,
  tokens: z.int(),
});

/** A note on the time line. */
export const runNote = z.object({ id: z.int(), step: z.int(), atMs: z.int(), text: z.string() });
export type RunNote = z.infer<typeof runNote>;

/** What the model answered to one of the recipe's prompts after an evaluation. */
export const runSample = z.object({
  step: z.int(),
  position: z.int(),
  prompt: z.string(),
  text: z.string(),
});
export type RunSample = z.infer<typeof runSample>;

export const runCheckpoint = z.object({
  step: z.int(),
  path: z.string(),
  savedAtMs: z.int(),
  sizeBytes: z.number(),
  isNewest: z.boolean(),
  /** The one with the lowest held-out loss. */
  isBest: z.boolean(),
});
export type RunCheckpoint = z.infer<typeof runCheckpoint>;

export const runDetail = runSummary.extend({
  recipe: z.record(z.string(), z.unknown()),
  hashes: runHashes,
  plan: runPlan,
  codeVersion: z.string().optional(),
  kernels: z.array(z.record(z.string(), z.unknown())),
  preflight: preflight.optional(),
  /** What the steps were forecast to take, and took; absent where there was no forecast or it did not complete. */
  forecast: z.object({ seconds: z.number(), errorSeconds: z.number(), tookSeconds: z.number() }).optional(),
  /** Beside `reason`: what can be done about it. */
  hint: z.string().optional(),
  events: z.array(runEvent),
  evaluations: z.array(evaluation),
  checkpointStep: z.int().optional(),
  activeMs: z.number(),
  folder: z.string(),
  notes: z.string(),
  timeNotes: z.array(runNote),
  samples: z.array(runSample),
});
export type RunDetail = z.infer<typeof runDetail>;

export const runStep = z.object({
  step: z.int(),
  atMs: z.int(),
  loss: anyNumber,
  gradNorm: anyNumber,
  learningRate: z.number(),
  supervisedTokens: z.int(),
  realTokens: z.int(),
  /** Positions computed, padding included. */
  positions: z.int(),
  milliseconds: z.number(),
  /** Floating-point operations of the step's mathematics. */
  flops: z.number(),
  /** Of the whole run up to this step, as the totals that follow. */
  elapsedMs: z.number(),
  realTokensTotal: z.number(),
  flopsTotal: z.number(),
});
export type RunStep = z.infer<typeof runStep>;

export const runMetrics = [
  'loss',
  'gradNorm',
  'learningRate',
  'tokensPerSecond',
  'milliseconds',
  'flopsPerSecond',
] as const;
/** What curves are drawn over: steps, real tokens, milliseconds of training, floating-point operations. */
export const runAxes = ['step', 'tokens', 'elapsed', 'flops'] as const;
export type RunAxis = (typeof runAxes)[number];
export type RunMetric = (typeof runMetrics)[number];

const numbers = z.instanceof<typeof Float64Array<ArrayBufferLike>>(Float64Array);

/** Columns of equal length. Where `blockSteps` is 1 the three value columns are equal: nothing was merged. */
const series = z.object({
  runId: id,
  metric: z.enum(runMetrics),
  blockSteps: z.int(),
  steps: numbers,
  /** Each point's place on the axis that was asked for. */
  x: numbers,
  /** NaN where a point holds no number at all. */
  minimum: numbers,
  maximum: numbers,
  mean: numbers,
  /** How many of a point's values are NaN or infinite. */
  numNonFinite: numbers,
});
export type Series = z.infer<typeof series>;

const runName = z.object({ id, name: z.string() });

/** Which two of several runs the waterfall joins, by their places among them. */
const pair = z.tuple([z.int().nonnegative(), z.int().nonnegative()]).default([0, 1]);

/** A waterfall from one run's time per real token to another's, in microseconds; negative parts make it faster. */
export const whyFaster = z.object({
  from: runName,
  to: runName,
  fromUsPerToken: z.number(),
  toUsPerToken: z.number(),
  /** Together with `unexplainedUs` exactly the difference. */
  parts: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(['padding', 'updates', 'head', 'recompute', 'kernel', 'gaps', 'data', 'host', 'beside']),
      us: z.number(),
    }),
  ),
  unexplainedUs: z.number(),
  /** What the runs did beside their steps: evaluation, checkpoints, loading. */
  beside: z.array(z.object({ name: z.string(), fromUs: z.number(), toUs: z.number() })),
});
export type WhyFaster = z.infer<typeof whyFaster>;

/** What came of a run beyond its summary; a figure that was not measured is absent. */
export const runFigures = z.object({
  realTokens: z.int(),
  /** Computed positions, padding included. */
  positions: z.int(),
  bestEvalLoss: loss.optional(),
  bestEvalStep: z.int().optional(),
  /** Lowest mean of 20 steps in a row, of all where there are fewer, of blocks of 256 where there are over 200,000. */
  bestLoss: loss.optional(),
  launchesPerStep: z.number().optional(),
  plannedBytes: z.number().optional(),
  energyJ: z.number().optional(),
  peakGpuBytes: z.number().optional(),
});
export type RunFigures = z.infer<typeof runFigures>;

export const runUpdate = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('run'), run: runSummary }),
  z.object({ kind: z.literal('step'), runId: id, step: runStep }),
  z.object({ kind: z.literal('event'), runId: id, event: runEvent }),
  z.object({
    kind: z.literal('progress'),
    runId: id,
    what: z.string(),
    done: z.number(),
    total: z.number().optional(),
  }),
]);
export type RunUpdate = z.infer<typeof runUpdate>;

/** Updates kept for a reader that is slower than they come. */
export const maxWaitingUpdates = 4096;

export const runCommands = ['pause', 'stop', 'checkpoint', 'profile'] as const;

const one = z.object({ id });
const checkpointChoice = z.union([z.enum(['newest', 'best']), z.int().nonnegative()]);
export type CheckpointChoice = z.infer<typeof checkpointChoice>;
const aRun = z.object({ run: runSummary });
const ok = z.object({ ok: z.literal(true) });

/** A run may be named by its id, by an unambiguous beginning of it, by its name, or as `latest`. */
export const runChannels = {
  'runs:preflight': call({ args: z.object({ recipe: recipeSchema }), result: preflight }),
  'runs:create': call({
    args: z.object({
      recipe: recipeSchema,
      /** Benchmark runs are not listed. */
      kind: z.enum(['train', 'benchmark']).default('train'),
      /** Trains on this many examples only, drawn by the recipe's seed. */
      maxExamples: z.int().positive().optional(),
      /** Times steps first where none is known yet; else such a run starts at once, and nothing is said of its time. */
      measure: z.boolean().default(true),
    }),
    result: aRun,
  }),
  'runs:list': wiredCall({
    args: z.object({
      /** See `main/core/runs/search/` for the language. */
      search: z.string().optional(),
      /** Archived ones too. */
      archived: z.boolean().default(false),
      /** Only those that were deleted and are not gone yet. */
      deleted: z.boolean().default(false),
    }),
    result: z.object({ runs: z.array(runSummary) }),
    wire: {
      packed: z.object({ runs: packedSummaries }),
      unpack: ({ runs }) => ({ runs: unpackRows(runs) as RunSummary[] }),
    },
  }),
  /** Names of the fields that the search knows, for completion. */
  'runs:search-fields': call({ args: z.object({}), result: z.object({ fields: z.array(z.string()) }) }),
  'runs:searches': call({
    args: z.object({}),
    result: z.object({ searches: z.array(z.object({ name: z.string(), query: z.string() })) }),
  }),
  /** Keeps a search by name; an empty query forgets it. */
  'runs:save-search': call({
    args: z.object({ name: z.string().trim().min(1).max(60), query: z.string().max(2000) }),
    result: ok,
  }),
  'runs:show': call({ args: one, result: z.object({ run: runDetail }) }),
  /** Sent to the engine that trains it; answered when the engine has done it. */
  'runs:command': call({ args: one.extend({ command: z.enum(runCommands) }), result: aRun }),
  /** A paused run goes on; an ended one starts again from its newest checkpoint, its best one, or that of a step. */
  /** `device`: instead of the one that it trained on; a step keeps its bins, whatever the number of devices. */
  'runs:resume': call({
    args: one.extend({ from: checkpointChoice.optional(), device: deviceName.optional() }),
    result: aRun,
  }),
  'runs:checkpoints': call({ args: one, result: z.object({ checkpoints: z.array(runCheckpoint) }) }),
  'runs:series': call({
    args: z.object({
      ids: z.array(id).min(1),
      metric: z.enum(runMetrics),
      maxPoints: z.int().positive().default(2000),
      fromStep: z.int().optional(),
      toStep: z.int().optional(),
      /** `wall`: UTC milliseconds, by which what the machine did is laid beside the steps. */
      axis: z.enum([...runAxes, 'wall']).default('step'),
    }),
    result: z.object({ series: z.array(series) }),
  }),
  'runs:tag': call({ args: one.extend({ tags: z.array(z.string().min(1).max(100)) }), result: ok }),
  'runs:untag': call({ args: one.extend({ tags: z.array(z.string()) }), result: ok }),
  /** What it is called; its recipe keeps the name that it began with. */
  'runs:rename': call({ args: one.extend({ name: z.string().trim().min(1).max(200) }), result: ok }),
  /** The run's own note, one text. */
  'runs:note': call({ args: one.extend({ text: z.string() }), result: ok }),
  /** A note on the time line: without `noteId` a new one; an empty text removes it. */
  'runs:time-note': call({
    args: one.extend({
      noteId: z.int().optional(),
      step: z.int().nonnegative().optional(),
      text: z.string().trim().max(2000),
    }),
    result: z.object({ notes: z.array(runNote) }),
  }),
  /** Deleted runs can be brought back for some days; `forever` takes them and their files away at once. */
  'runs:delete': call({
    args: z.object({ ids: z.array(id).min(1), forever: z.boolean().default(false) }),
    result: ok,
  }),
  'runs:restore': call({ args: z.object({ ids: z.array(id).min(1) }), result: ok }),
  'runs:archive': call({
    args: z.object({ ids: z.array(id).min(1), archived: z.boolean().default(true) }),
    result: ok,
  }),
  'runs:compare': call({
    args: z.object({
      ids: z.array(id).min(2),
      /** Also evaluation, checkpoints and loading in the times per token. */
      whole: z.boolean().default(false),
      pair,
    }),
    result: z.object({
      differences: z.array(z.object({ field: z.string(), values: z.array(z.unknown()) })),
      results: z.array(runSummary),
      figures: z.array(runFigures),
      whyFaster: whyFaster.optional(),
      /** Why there is no `whyFaster`. */
      whyNot: z.string().optional(),
    }),
  }),
  'runs:profile': call({ args: one, result: z.object({ profile: runProfile }) }),
  /** The newest profile's timeline as a Chrome trace (chrome://tracing, Perfetto). */
  'runs:trace': call({ args: one, result: z.object({ json: z.string() }) }),
  'runs:report': call({
    args: z.object({ ids: z.array(id).min(1), pair }),
    result: z.object({ html: z.string() }),
  }),
  'runs:export': call({
    args: one.extend({ folder: z.string().min(1), checkpoint: checkpointChoice.default('newest') }),
    result: z.object({ files: z.array(z.string()) }),
  }),
  'runs:generate': call({
    args: z.object({
      /** A run, or a model folder. */
      model: z.string().min(1),
      checkpoint: checkpointChoice.default('newest'),
      prompt: z.string(),
      tokens: z.int().positive().default(128),
      temperature: z.number().nonnegative().default(0),
      seed: z.int().nonnegative().default(0),
    }),
    result: z.object({ text: z.string() }),
  }),
  /** Updates of one run, or of all. Dropped updates are reported: read the run again. */
  'runs:watch': stream({
    args: z.object({ id: id.optional() }),
    event: runUpdate,
    limit: maxWaitingUpdates,
    paceMs: 50,
  }),
};
