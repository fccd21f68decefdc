import { z } from 'zod';

export const protocolVersion = 1;

/** What the engine writes on stdout, one JSON object a line. Fields that are not named here are kept. */
const step = z.int().nonnegative();
/** JSON has no number for NaN and the infinities: they come by name, or as null from a writer that knows no better. */
const anyNumber = z
  .union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity']), z.null()])
  .transform((value) => (value === null ? Number.NaN : Number(value)));

export const helloEvent = z.looseObject({
  event: z.literal('hello'),
  protocol: z.int(),
  version: z.string(),
  devices: z.array(z.looseObject({})).default([]),
  libraries: z.unknown().optional(),
  kernels: z.array(z.record(z.string(), z.unknown())).default([]),
});

export const engineEvent = z.discriminatedUnion('event', [
  helloEvent,
  z.looseObject({
    event: z.literal('progress'),
    what: z.string(),
    done: z.number(),
    total: z.number().optional(),
  }),
  z.looseObject({
    event: z.literal('step'),
    step,
    steps: z.int(),
    loss: anyNumber,
    gradNorm: anyNumber,
    learningRate: z.number(),
    supervisedTokens: z.int(),
    realTokens: z.int(),
    positions: z.int(),
    milliseconds: z.number(),
    /** Since this engine began to train, pauses left out, by a monotonic clock. */
    elapsedMs: z.number().optional(),
    flops: z.number().default(0),
    atMs: z.number(),
  }),
  z.looseObject({
    event: z.literal('eval'),
    step,
    phase: z.string(),
    loss: anyNumber,
    tokens: z.int(),
    best: z.boolean().default(false),
  }),
  z.looseObject({ event: z.literal('sample'), step, index: z.int(), ids: z.array(z.int()) }),
  z.looseObject({ event: z.literal('checkpoint'), step, path: z.string() }),
  /** `message`: what the engine waits for, where nobody asked it to. */
  z.looseObject({ event: z.literal('paused'), step: step.optional(), message: z.string().optional() }),
  z.looseObject({ event: z.literal('resumed'), step: step.optional() }),
  z.looseObject({ event: z.literal('profile'), step: step.optional() }),
  z.looseObject({ event: z.literal('account'), fromStep: step }),
  z.looseObject({
    event: z.literal('telemetry'),
    atMs: z.number(),
    gpus: z.array(z.looseObject({})).optional(),
    reason: z.string().optional(),
  }),
  z.looseObject({
    event: z.literal('warning'),
    message: z.string(),
    code: z.string().optional(),
    hint: z.string().optional(),
  }),
  z.looseObject({ event: z.literal('done'), step: step.optional(), reason: z.string().optional() }),
  z.looseObject({
    event: z.literal('error'),
    code: z.string(),
    message: z.string(),
    hint: z.string().nullish(),
    rank: z.int().optional(),
  }),
]);
export type EngineEvent = z.infer<typeof engineEvent>;

export type EngineCommand = 'pause' | 'resume' | 'stop' | 'checkpoint' | 'profile';
