import type { z } from 'zod';
import {
  progressSchema,
  type Call,
  type CallHandler,
  type Contract,
  type Handlers,
  type Progress,
} from './channel.ts';
import type { Stream, StreamHandler } from './channel.ts';
import { otherVersion, TesseraError, toErrorBody } from './errors.ts';
import { EventQueue } from './eventQueue.ts';
import { clientFrame, type Port } from './port.ts';

interface Active {
  abort: AbortController;
  acknowledge: () => void;
}

export interface ServeOptions {
  onClose?: () => void;
  /** Failures that are the program's own fault, for the log. */
  onFault?: (channel: string, error: unknown) => void;
}

/** Answers one client: checks arguments on the way in, results and events on the way out. */
export function serve<C extends Contract>(
  contract: C,
  handlers: Handlers<C>,
  port: Port,
  options: ServeOptions = {},
): void {
  const active = new Map<number, Active>();
  port.start(
    (raw) => {
      const frame = clientFrame.safeParse(raw);
      if (!frame.success) return;
      const { data } = frame;
      if (data.kind === 'cancel') active.get(data.id)?.abort.abort();
      else if (data.kind === 'ack') active.get(data.id)?.acknowledge();
      else void answer(data.id, data.channel, data.args);
    },
    () => {
      for (const { abort } of active.values()) abort.abort();
      options.onClose?.();
    },
  );

  async function answer(id: number, channel: string, rawArgs: unknown): Promise<void> {
    const entry: Active = { abort: new AbortController(), acknowledge: () => undefined };
    active.set(id, entry);
    try {
      const spec = Object.hasOwn(contract, channel) ? contract[channel] : undefined;
      if (spec === undefined)
        throw new TesseraError('unknownChannel', `the core has no channel '${channel}'`, otherVersion);
      const args = check(spec.args, rawArgs, 'badArguments', channel);
      const value =
        spec.kind === 'call'
          ? await answerCall(
              spec,
              handlers[channel] as unknown as CallHandler<Call>,
              id,
              channel,
              args,
              entry,
            )
          : await answerStream(spec, handlers[channel] as unknown as StreamHandler<Stream>, id, args, entry);
      port.send({ kind: 'result', id, value });
    } catch (error) {
      const body = toErrorBody(error);
      if (body.code === 'internal') options.onFault?.(channel, error);
      port.send({ kind: 'error', id, error: body });
    } finally {
      active.delete(id);
    }
  }

  async function answerCall(
    spec: Call,
    handler: CallHandler<Call>,
    id: number,
    channel: string,
    args: unknown,
    entry: Active,
  ): Promise<unknown> {
    const progress = latestOnly((value) => {
      port.send({ kind: 'progress', id, value: progressSchema.parse(value) });
    });
    try {
      const result = await handler(args, { signal: entry.abort.signal, progress: progress.push });
      progress.flush();
      return check(spec.wire?.packed ?? spec.result, result, 'internal', `${channel} (result)`);
    } finally {
      progress.stop();
    }
  }

  async function answerStream(
    spec: Stream,
    handler: StreamHandler<Stream>,
    id: number,
    args: unknown,
    entry: Active,
  ): Promise<null> {
    const queue = new EventQueue<unknown>(
      spec.limit,
      (event) => spec.key?.(event),
      (events, numDropped) => {
        port.send({ kind: 'events', id, events, numDropped });
      },
      spec.paceMs,
    );
    entry.acknowledge = () => {
      queue.acknowledge();
    };
    await handler(
      args,
      (event) => {
        queue.push(spec.event.parse(event));
      },
      entry.abort.signal,
    );
    if (!entry.abort.signal.aborted) await queue.drained(entry.abort.signal);
    return null;
  }
}

function check(schema: z.ZodType, value: unknown, code: string, where: string): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  throw new TesseraError(code, `${where}: ${path === '' ? '' : `${path}: `}${issue?.message ?? 'invalid'}`);
}

const progressIntervalMs = 50;

function latestOnly(send: (progress: Progress) => void) {
  let waiting: Progress | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    if (waiting !== undefined) send(waiting);
    waiting = undefined;
  };
  return {
    push: (progress: Progress) => {
      const first = timer === undefined;
      waiting = progress;
      if (first) flush();
      timer ??= setTimeout(() => {
        timer = undefined;
        flush();
      }, progressIntervalMs);
    },
    flush,
    stop: () => {
      clearTimeout(timer);
    },
  };
}
