import { createServer, connect, type Socket } from 'node:net';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call, stream, untilAborted, type Handlers } from '../../main/contract/channel.ts';
import { createClient } from '../../main/contract/client.ts';
import { TesseraError } from '../../main/contract/errors.ts';
import { serve } from '../../main/contract/server.ts';
import { socketPort } from '../../main/core/ports.ts';

/** A worked example of a capability: its channels, its handlers, its caller. */
const channels = {
  'sum:of': call({ args: z.object({ numbers: z.array(z.number()) }), result: z.object({ sum: z.number() }) }),
  'lengths:get': call({
    args: z.object({ count: z.int() }),
    result: z.object({ lengths: z.instanceof(Int32Array) }),
  }),
  'slow:job': call({ args: z.object({}), result: z.object({ cancelled: z.boolean() }) }),
  'bad:result': call({ args: z.object({}), result: z.object({ sum: z.number() }) }),
  'burst:events': stream({
    args: z.object({ count: z.int() }),
    event: z.object({ index: z.int() }),
    limit: 100,
  }),
  'ticks:watch': stream({
    args: z.object({ count: z.int() }),
    event: z.object({ index: z.int() }),
    paceMs: 40,
  }),
  'levels:watch': stream({
    args: z.object({ count: z.int() }),
    event: z.object({ gpu: z.int(), level: z.number() }),
    key: (event) => String(event.gpu),
  }),
};
let largestQueue = 0;
const handlers: Handlers<typeof channels> = {
  'sum:of': ({ numbers }) => {
    if (numbers.length === 0) throw new TesseraError('nothing', 'no numbers', 'Give some.');
    return { sum: numbers.reduce((a, b) => a + b, 0) };
  },
  'lengths:get': ({ count }) => ({ lengths: new Int32Array(count).fill(3) }),
  'slow:job': async (_args, { signal, progress }) => {
    for (let done = 0; done <= 1000; done += 1) progress({ what: 'Working', done, total: 1000 });
    await untilAborted(signal);
    return { cancelled: true };
  },
  'bad:result': () => ({ sum: 'three' as unknown as number }),
  'burst:events': async ({ count }, emit) => {
    for (let index = 0; index < count; index += 1) {
      emit({ index });
      if (index % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  },
  'ticks:watch': async ({ count }, emit) => {
    for (let index = 0; index < count; index += 1) {
      emit({ index });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
  'levels:watch': async ({ count }, emit) => {
    for (let level = 0; level < count; level += 1) emit({ gpu: level % 2, level });
    await Promise.resolve();
  },
};

const open: { close: () => void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

async function link() {
  const path = join(mkdtempSync(join(tmpdir(), 'tessera-link-')), 's');
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    serve(channels, handlers, socketPort(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(path, resolve);
  });
  const client = createClient(channels, socketPort(connect(path)));
  open.push(client, server);
  const port = () => {
    const socket = connect(path);
    open.push({ close: () => socket.destroy() });
    return socketPort(socket);
  };
  return { client, sockets, port };
}

describe('a link between client and core', () => {
  it('carries calls, typed arrays and errors with their hints', async () => {
    const { client } = await link();
    expect(await client.call('sum:of', { numbers: [1, 2, 3] })).toEqual({ sum: 6 });
    expect((await client.call('lengths:get', { count: 100_000 })).lengths.length).toBe(100_000);
    await expect(client.call('sum:of', { numbers: [] })).rejects.toMatchObject({
      code: 'nothing',
      hint: 'Give some.',
    });
  });

  it('checks arguments before they are sent and results before they are used', async () => {
    const { client } = await link();
    await expect(client.call('sum:of', { numbers: ['x' as unknown as number] })).rejects.toMatchObject({
      code: 'badArguments',
    });
    await expect(client.call('bad:result', {})).rejects.toMatchObject({ code: 'internal' });
  });

  it('says in words that the other end is of another version: an answer, an event, a channel that it lacks', async () => {
    const { port } = await link();
    const newer = createClient(
      {
        'sum:of': call({
          args: z.object({ numbers: z.array(z.number()) }),
          result: z.object({ sum: z.number(), mean: z.number() }),
        }),
        'ticks:watch': stream({ args: z.object({ count: z.int() }), event: z.object({ atMs: z.number() }) }),
        'later:thing': call({ args: z.object({}), result: z.object({}) }),
      },
      port(),
    );
    const hint = expect.stringContaining('Close every window and command') as string;
    await expect(newer.call('sum:of', { numbers: [2] })).rejects.toMatchObject({
      code: 'notUnderstood',
      message: expect.stringMatching(/^the core's answer to sum:of is not understood \(mean: /) as string,
      hint,
    });
    const watched = newer.subscribe('ticks:watch', { count: 3 }, () => undefined);
    await expect(watched.done).rejects.toMatchObject({ code: 'notUnderstood', hint });
    await expect(newer.call('later:thing', {})).rejects.toMatchObject({
      code: 'unknownChannel',
      message: "the core has no channel 'later:thing'",
      hint,
    });
  });

  it('reports progress and cancels', async () => {
    const { client } = await link();
    const controller = new AbortController();
    const seen: number[] = [];
    const result = client.call(
      'slow:job',
      {},
      {
        signal: controller.signal,
        onProgress: ({ done }) => {
          seen.push(done);
          if (done === 1000) controller.abort();
        },
      },
    );
    expect(await result).toEqual({ cancelled: true });
    expect(seen.length).toBeLessThan(10);
    expect(seen.at(-1)).toBe(1000);
  });

  it('bounds what waits for a slow reader, says what it dropped, and loses nothing without saying so', async () => {
    const { client } = await link();
    let received = 0;
    let dropped = 0;
    let last = -1;
    const { done } = client.subscribe('burst:events', { count: 50_000 }, (events, numDropped) => {
      received += events.length;
      dropped += numDropped;
      largestQueue = Math.max(largestQueue, events.length);
      last = events.at(-1)?.index ?? last;
      const until = Date.now() + 2;
      while (Date.now() < until);
    });
    await done;
    expect(received + dropped).toBe(50_000);
    expect(dropped).toBeGreaterThan(0);
    expect(largestQueue).toBeLessThanOrEqual(100);
    expect(last).toBe(49_999);
  });

  it('sends events that trickle in together, the first at once, each of them once', async () => {
    const { client } = await link();
    const batches: number[][] = [];
    await client.subscribe('ticks:watch', { count: 200 }, (events) => {
      batches.push(events.map(({ index }) => index));
    }).done;
    expect(batches.flat()).toEqual(Array.from({ length: 200 }, (_, index) => index));
    expect(batches[0]).toEqual([0]);
    // 200 ms or more of events, in batches 40 ms or more apart.
    expect(batches.length).toBeLessThan(100);
  });

  it('keeps only the newest event of a key', async () => {
    const { client } = await link();
    const levels: number[] = [];
    await client.subscribe('levels:watch', { count: 1000 }, (events) => {
      levels.push(...events.map((event) => event.level));
    }).done;
    expect(levels).toEqual([998, 999]);
  });

  it('fails pending calls when the other side dies', async () => {
    const { client, sockets } = await link();
    const call = client.call('slow:job', {});
    await client.call('sum:of', { numbers: [1] });
    for (const socket of sockets) socket.destroy();
    await expect(call).rejects.toMatchObject({ code: 'disconnected' });
    await client.closed;
  });
});
