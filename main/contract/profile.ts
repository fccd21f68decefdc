import { z } from 'zod';

const row = z.object({
  operation: z.string(),
  /** forward | recompute | backward | optimizer */
  phase: z.string().default(''),
  /** `layers`, or `outside`: embedding, head, optimizer, copies. */
  where: z.string().default('layers'),
  calls: z.number(),
  averageUs: z.number(),
  totalMs: z.number(),
  flops: z.number().default(0),
  /** Least bytes through memory. */
  bytes: z.number().default(0),
  /** Of the slower of its two limits: the matrix rate and the memory's. Absent where those are unknown. */
  percentOfRoof: z.number().optional(),
  couldSaveMs: z.number().optional(),
});
export type ProfileRow = z.infer<typeof row>;

const span = z.object({
  operation: z.string(),
  phase: z.string(),
  /** −1: embedding, head, optimizer. */
  layer: z.int(),
  startMs: z.number(),
  ms: z.number(),
});

const finding = z.object({
  finding: z.string(),
  /** What a step would save at most. */
  estimateMs: z.number(),
  advice: z.string(),
});
export type Finding = z.infer<typeof finding>;

/** One step of a run, operation by operation, and what to make of it. */
export const runProfile = z.object({
  step: z.int().optional(),
  /** Steps that this engine had taken before: in its first ones memory is touched for the first time. */
  stepsBefore: z.int().optional(),
  backend: z.string().default('cpu'),
  /** The step's wall time, as far as it was measured. */
  milliseconds: z.number().default(0),
  /** From the first operation's begin to the last one's end, on the device that computes. */
  spanMs: z.number().default(0),
  realTokens: z.number().default(0),
  positions: z.number().default(0),
  launches: z.number().optional(),
  recompute: z.string().optional(),
  memory: z
    .object({
      planned: z.number(),
      activations: z.number(),
      /** What a plan without recomputation needs, and what may be taken. */
      withoutRecompute: z.number().optional(),
      available: z.number().optional(),
    })
    .optional(),
  /** Measured on this machine. */
  roof: z.object({ flopsPerSecond: z.number(), bytesPerSecond: z.number() }).optional(),
  /** Operations on the host; on a CPU run those that compute. */
  host: z.array(row),
  device: z.array(row),
  timeline: z.array(span),
  headline: z.string(),
  summary: z.string(),
  /** What can be changed before what can only be told, in each the largest first. */
  verdict: z.array(finding),
});
export type RunProfile = z.infer<typeof runProfile>;

/** As the engine wrote it. */
export const storedProfile = runProfile
  .omit({ timeline: true, headline: true, summary: true, verdict: true })
  .extend({
    host: z.array(row).default([]),
    device: z.array(row).default([]),
    timeline: z
      .object({
        names: z.array(z.string()),
        phases: z.array(z.string()),
        spans: z.array(z.tuple([z.int(), z.int(), z.int(), z.number(), z.number()])),
      })
      .optional(),
  });
export type StoredProfile = z.infer<typeof storedProfile>;
