import { z } from 'zod';
import { call } from './channel.ts';
import { strategyNames } from './packing.ts';

/** One step of the ladder; figures are of the median round. */
const rung = z.object({
  /** `reference`: the plain kernels that the fast ones are checked against. */
  kernels: z.enum(['reference', 'fast']),
  strategy: z.enum(strategyNames),
  /** The kernel that computes the delta rule, and what the kernels are built on. */
  deltaRule: z.string(),
  builtOn: z.string(),
  steps: z.int(),
  /** Real tokens of a pass, and the positions that were computed for them: padding is computed too. */
  tokens: z.int(),
  positions: z.int(),
  /** tokens ÷ (bins × budget) */
  fill: z.number(),
  stepMilliseconds: z.number(),
  tokensPerSecond: z.number(),
  /** Faster than the rung before, and than the first; medians of what each round gave. */
  factor: z.number(),
  factorInAll: z.number(),
});

export const ladder = z.object({
  id: z.int(),
  atMs: z.int(),
  device: z.string(),
  /** As in `tessera doctor`, where it says. */
  deviceName: z.string().optional(),
  /** Folder names; the engine's version. */
  model: z.string(),
  dataset: z.string(),
  version: z.string(),
  budget: z.int(),
  examples: z.int(),
  rounds: z.int(),
  /** Largest relative difference between a rung's rounds: how busy the machine was. */
  spread: z.number(),
  seconds: z.number(),
  rungs: z.array(rung),
});
export type Ladder = z.infer<typeof ladder>;
export type Rung = z.infer<typeof rung>;

export const benchChannels = {
  /**
   * Trains on the same examples by the reference kernels with padding, by the fast kernels with padding, and by the fast
   * kernels packed, in turns, and keeps what came of it. Runs wait meanwhile; with one going it is refused.
   */
  'bench:ladder': call({
    args: z.object({
      /** A folder, and a path or the id of a dataset; absent: the bundled ones. */
      model: z.string().optional(),
      dataset: z.string().optional(),
      device: z.string().default('auto'),
      budget: z.int().min(2).default(1024),
      examples: z.int().positive().default(40),
      /** Absent: up to three, as many as fit into some 50 seconds. */
      rounds: z.int().positive().max(20).optional(),
    }),
    result: z.object({ ladder }),
  }),
  /** The newest first. */
  'bench:ladders': call({
    args: z.object({ limit: z.int().positive().max(100).default(20) }),
    result: z.object({ ladders: z.array(ladder) }),
  }),
};
