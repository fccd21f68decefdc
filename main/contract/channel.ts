import { z } from 'zod';

/**
 * The contract is one map from channel to schemas. From it are derived the handlers' types (`Handlers`), the
 * client (`client.ts`) and the checks on both ends. A capability declares its channels in a file of its own:
 *
 *   export const datasetChannels = {
 *     'datasets:list': call({ args: z.object({}), result: z.object({ datasets: z.array(dataset) }) }),
 *     'datasets:watch': stream({ args: z.object({}), event: datasetEvent }),
 *   };
 */
export interface Call<A extends z.ZodType = z.ZodType, R extends z.ZodType = z.ZodType> {
  kind: 'call';
  args: A;
  result: R;
  /** How a result travels that would be slow as it is: what the handler gives, checked at both ends in place of it. */
  wire?: Wire<z.ZodType, z.output<R>> | undefined;
}

export interface Wire<P extends z.ZodType, T> {
  packed: P;
  // A method: a call of one result stands where any call is asked for.
  unpack(packed: z.output<P>): T;
}

export interface WiredCall<A extends z.ZodType, R extends z.ZodType, P extends z.ZodType> extends Call<A, R> {
  wire: Wire<P, z.output<R>>;
}

export interface Stream<A extends z.ZodType = z.ZodType, E extends z.ZodType = z.ZodType> {
  kind: 'stream';
  args: A;
  event: E;
  /** Events kept for a slow reader; beyond it the oldest are dropped and their number is reported. */
  limit: number;
  /** Batches follow one another by so much or more; 0: as soon as the reader has taken the one before. */
  paceMs: number;
  /** Events with the same key replace one another while they wait. */
  key?(event: z.output<E>): string | undefined;
}

export type Contract = Record<string, Call | Stream>;

export function call<A extends z.ZodType, R extends z.ZodType>(spec: { args: A; result: R }): Call<A, R> {
  return { kind: 'call', ...spec };
}

export function wiredCall<A extends z.ZodType, R extends z.ZodType, P extends z.ZodType>(spec: {
  args: A;
  result: R;
  wire: Wire<P, z.output<R>>;
}): WiredCall<A, R, P> {
  return { kind: 'call', ...spec };
}

export function stream<A extends z.ZodType, E extends z.ZodType>(spec: {
  args: A;
  event: E;
  limit?: number;
  paceMs?: number;
  key?: (event: z.output<E>) => string | undefined;
}): Stream<A, E> {
  return { kind: 'stream', limit: 1024, paceMs: 0, ...spec };
}

/** Progress of a long call: `done` of `total` (unknown while absent) in `unit`. */
export const progressSchema = z.object({
  what: z.string(),
  done: z.number(),
  total: z.number().optional(),
  unit: z.string().optional(),
  detail: z.string().optional(),
});
export type Progress = z.infer<typeof progressSchema>;

export interface CallContext {
  /** Aborted when the caller cancels or goes away. */
  signal: AbortSignal;
  /** Cheap: only the newest is sent, at most 20 times a second. */
  progress: (progress: Progress) => void;
}

export type CallHandler<C extends Call> = (
  args: z.output<C['args']>,
  context: CallContext,
) => Answer<C> | Promise<Answer<C>>;

type Answer<C extends Call> = C extends { wire: { packed: infer P extends z.ZodType } }
  ? z.input<P>
  : z.input<C['result']>;

/** The stream ends when the handler's promise settles; `signal` aborts when the reader goes away. */
export type StreamHandler<S extends Stream> = (
  args: z.output<S['args']>,
  emit: (event: z.input<S['event']>) => void,
  signal: AbortSignal,
) => Promise<void>;

export type Handlers<C extends Contract> = {
  [K in keyof C]: C[K] extends Call ? CallHandler<C[K]> : C[K] extends Stream ? StreamHandler<C[K]> : never;
};

export type CallChannel<C extends Contract> = { [K in keyof C]: C[K] extends Call ? K : never }[keyof C] &
  string;
export type StreamChannel<C extends Contract> = { [K in keyof C]: C[K] extends Stream ? K : never }[keyof C] &
  string;
export type ArgsOf<C extends Contract, K extends keyof C> = z.input<C[K]['args']>;
export type ResultOf<C extends Contract, K extends CallChannel<C>> = C[K] extends Call
  ? z.output<C[K]['result']>
  : never;
export type EventOf<C extends Contract, K extends StreamChannel<C>> = C[K] extends Stream
  ? z.output<C[K]['event']>
  : never;

/** Resolves when the signal aborts: a stream handler awaits it to stay open. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
