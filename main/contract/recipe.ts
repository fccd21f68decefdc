import { z } from 'zod';
import { overlongNames, strategyNames } from './packing.ts';

/** The file that says everything about a run. Every default is here and is written back into the run. */
const beta = z.number().min(0).lt(1);
const count = z.int().positive();
/** What the engine's fp32 still computes with: beyond it one step makes every weight infinite. */
const rate = z.number().nonnegative().max(1000);

export const recomputePolicies = ['auto', 'full', 'P1', 'P2', 'P0'] as const;

const template = z.strictObject({
  /** A named template of the model folder; absent: the one that the model would take. */
  name: z.string().optional(),
  /** Variables that the template sees beside the messages. */
  arguments: z.record(z.string(), z.unknown()).default({}),
});

const supervise = z.strictObject({
  turns: z.enum(['assistant', 'last', 'all']).default('assistant'),
  reasoning: z.boolean().default(true),
});

const packing = z.strictObject({
  strategy: z.enum(strategyNames).default('best-fit'),
  /** Tokens in a bin. */
  budget: z.int().min(2).default(8192),
  seed: z.int().nonnegative().default(0),
  /** Absent: chats are truncated, texts split. */
  overlong: z.enum(overlongNames).optional(),
});

const optimizer = z.strictObject({
  /** master32: fp32 master weights and moments; bf16sr: bf16 with stochastic rounding. */
  mode: z.enum(['master32', 'bf16sr']).default('master32'),
  /** Absent or auto: bf16 with bf16sr on a GPU and one micro-batch a step, else fp32. */
  gradients: z.enum(['auto', 'fp32', 'bf16']).optional(),
  lr: rate.default(2e-5),
  betas: z.tuple([beta, beta]).default([0.9, 0.95]),
  eps: z.number().positive().max(1).default(1e-8),
  weightDecay: rate.default(0.01),
  /** Whether norms, gates' biases and other one-dimensional parameters decay too. */
  decay1d: z.boolean().default(false),
  /** Largest global gradient norm; 0: no clipping. */
  clip: z.number().nonnegative().default(1),
});

const schedule = z.strictObject({
  kind: z.enum(['constant', 'linear', 'cosine']).default('cosine'),
  warmupSteps: z.int().nonnegative().default(0),
  minLr: rate.default(0),
});

const checkpoint = z.strictObject({
  everySteps: count.optional(),
  everyMinutes: z.number().positive().optional(),
  keep: count.default(2),
  /** Keeps the checkpoint with the lowest held-out loss besides the newest. */
  best: z.boolean().default(false),
});

const evaluate = z.strictObject({
  everySteps: count.optional(),
  /** Prompts that the model answers after each evaluation; on a GPU this copies the weights to the host each time. */
  samples: z.array(z.string().min(1).max(4000)).max(8).default([]),
  /** Tokens of an answer at most. */
  sampleTokens: z.int().positive().max(1024).default(64),
});

/** Each with all before it: ZeRO-1, ZeRO-2, ZeRO-3. */
export const shardings = ['optimizer', 'gradients', 'weights'] as const;

/** Where a run trains; several GPUs are ranks, and `cpu:0,1` are two on the CPU. */
export const deviceName = z
  .string()
  .regex(/^(auto|cpu|cpu:\d+(,\d+)+|cuda:\d+(,\d+)*)$/, 'must be auto, cpu, cuda:0 or cuda:0,1')
  .refine(
    (device) => new Set(device.split(/[:,]/)).size === device.split(/[:,]/).length,
    'names a device twice',
  );

export const recipeSchema = z
  .strictObject({
    tessera: z.literal(1).default(1),
    name: z.string().min(1).max(200).default('run'),
    /** A folder; `bundled` is the small model that comes with the program. */
    model: z.string().min(1),
    /** The id of an imported dataset, or a path; `bundled` are the sample chats. */
    dataset: z.string().min(1),
    evalDataset: z.string().min(1).optional(),
    /** Share of the examples held out, never trained on. */
    evalShare: z.number().min(0).lt(1).optional(),
    device: deviceName.default('auto'),
    precision: z.enum(['auto', 'fp32', 'bf16']).default('auto'),
    template: template.prefault({}),
    supervise: supervise.prefault({}),
    packing: packing.prefault({}),
    steps: count.optional(),
    epochs: count.optional(),
    gradAccumulation: count.default(1),
    optimizer: optimizer.prefault({}),
    schedule: schedule.prefault({}),
    recompute: z.enum(recomputePolicies).default('auto'),
    /** What each of several ranks keeps a share of; absent: the least that fits. */
    sharding: z.enum(['auto', ...shardings]).optional(),
    checkpoint: checkpoint.prefault({}),
    evaluate: evaluate.prefault({}),
    profileAtStep: count.optional(),
    acceptSlow: z.boolean().default(false),
    /** Absent: the fast ones. `reference`: the plain kernels that the fast ones are measured against. */
    kernels: z.enum(['fast', 'reference']).optional(),
    seed: z.int().nonnegative().default(0),
  })
  .refine((recipe) => recipe.steps === undefined || recipe.epochs === undefined, {
    path: ['steps'],
    error: "is given beside 'epochs'; give one of the two",
  })
  .refine((recipe) => recipe.evalDataset === undefined || recipe.evalShare === undefined, {
    path: ['evalShare'],
    error: "is given beside 'evalDataset'; give one of the two",
  })
  .refine(({ schedule: { minLr }, optimizer: { lr } }) => minLr <= lr, {
    path: ['schedule', 'minLr'],
    error: "is above 'optimizer.lr': the rate would rise to where it should fall",
  })
  .transform((recipe) =>
    recipe.steps === undefined && recipe.epochs === undefined ? { ...recipe, epochs: 1 } : recipe,
  );

export type RecipeInput = z.input<typeof recipeSchema>;
export type Recipe = z.output<typeof recipeSchema>;
export type Sharding = (typeof shardings)[number];
