import type { z } from 'zod';
import { progressSchema } from './channel.ts';
import type { ArgsOf, CallChannel, Contract, EventOf, Progress, ResultOf, StreamChannel } from './channel.ts';
import { fromErrorBody, otherVersion, TesseraError } from './errors.ts';
import { serverFrame, type Port } from './port.ts';

export interface CallOptions {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

export interface Subscription {
  /** Settles when the stream ends: rejects with the handler's error, resolves after `close`. */
  done: Promise<void>;
  close: () => void;
}

/** The caller's side of a contract: `client.call('datasets:list', {})`. */
export interface Client<C extends Contract> {
  call: <K extends CallChannel<C>>(
    channel: K,
    args: ArgsOf<C, K>,
    options?: CallOptions,
  ) => Promise<ResultOf<C, K>>;
  /** `onEvents` gets batches; the next comes after it has returned. `numDropped` > 0: read the state again. */
  subscribe: <K extends StreamChannel<C>>(
    channel: K,
    args: ArgsOf<C, K>,
    onEvents: (events: EventOf<C, K>[], numDropped: number) => void,
  ) => Subscription;
  close: () => void;
  /** Resolves when the link is gone, whoever ended it. */
  closed: Promise<void>;
}

interface Pending {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  onProgress?: ((progress: Progress) => void) | undefined;
  onEvents?: (events: unknown[], numDropped: number) => void;
}

export function createClient<C extends Contract>(contract: C, port: Port): Client<C> {
  const pending = new Map<number, Pending>();
  let nextId = 0;
  let isClosed = false;
  const { promise: closed, resolve: resolveClosed } = withResolvers();

  port.start(receive, () => {
    isClosed = true;
    for (const entry of pending.values()) entry.reject(disconnected());
    pending.clear();
    resolveClosed();
  });

  function receive(raw: unknown): void {
    const parsed = serverFrame.safeParse(raw);
    if (!parsed.success) return;
    const frame = parsed.data;
    const entry = pending.get(frame.id);
    if (entry === undefined) return;
    if (frame.kind === 'progress') entry.onProgress?.(progressSchema.parse(frame.value));
    else if (frame.kind === 'events') {
      try {
        entry.onEvents?.(frame.events, frame.numDropped);
      } catch (error) {
        if (!(error instanceof TesseraError) || error.code !== 'notUnderstood') throw error;
        // Whoever waits for the end of the stream hears why; nobody's event loop does.
        pending.delete(frame.id);
        port.send({ kind: 'cancel', id: frame.id });
        entry.reject(error);
      } finally {
        port.send({ kind: 'ack', id: frame.id });
      }
    } else {
      pending.delete(frame.id);
      if (frame.kind === 'result') entry.resolve(frame.value);
      else entry.reject(fromErrorBody(frame.error));
    }
  }

  function request(channel: string, args: unknown, entry: Omit<Pending, 'resolve' | 'reject'>) {
    const id = nextId++;
    const promise = new Promise<unknown>((resolve, reject) => {
      if (isClosed) {
        reject(disconnected());
        return;
      }
      pending.set(id, { resolve, reject, ...entry });
      port.send({ kind: 'call', id, channel, args });
    });
    const cancel = () => {
      if (pending.has(id) && !isClosed) port.send({ kind: 'cancel', id });
    };
    return { promise, cancel };
  }

  return {
    async call(channel, args, options = {}) {
      const spec = contract[channel];
      if (spec?.kind !== 'call') throw new TesseraError('unknownChannel', `there is no call '${channel}'`);
      const { promise, cancel } = request(channel, checkArgs(spec.args, args, channel), options);
      options.signal?.addEventListener('abort', cancel, { once: true });
      if (options.signal?.aborted === true) cancel();
      try {
        const answer = await promise;
        const { wire } = spec;
        const checked = understand(wire?.packed ?? spec.result, channel, answer);
        return (wire === undefined ? checked : wire.unpack(checked)) as never;
      } finally {
        options.signal?.removeEventListener('abort', cancel);
      }
    },
    subscribe(channel, args, onEvents) {
      const spec = contract[channel];
      if (spec?.kind !== 'stream')
        throw new TesseraError('unknownChannel', `there is no stream '${channel}'`);
      const { promise, cancel } = request(channel, checkArgs(spec.args, args, channel), {
        onEvents: (events, numDropped) => {
          onEvents(events.map((event) => understand(spec.event, channel, event)) as never[], numDropped);
        },
      });
      return { done: promise.then(() => undefined), close: cancel };
    },
    close: () => {
      port.close();
    },
    closed,
  };
}

function checkArgs(schema: z.ZodType, args: unknown, channel: string): unknown {
  const parsed = schema.safeParse(args);
  // The original travels, not the parsed value: the other end parses it again and fills defaults itself.
  if (parsed.success) return args;
  const issue = parsed.error.issues[0];
  throw new TesseraError(
    'badArguments',
    `${channel}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`,
  );
}

/** What the other end sent, checked: an end of another version says things that this one does not know. */
function understand(schema: z.ZodType, channel: string, value: unknown): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  throw new TesseraError(
    'notUnderstood',
    `the core's answer to ${channel} is not understood (${path === '' ? '' : `${path}: `}${issue?.message ?? 'invalid'})`,
    otherVersion,
  );
}

function disconnected(): TesseraError {
  return new TesseraError(
    'disconnected',
    'the connection to the core ended',
    'Run the command again: it starts a new core.',
  );
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
