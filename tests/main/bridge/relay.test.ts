import { describe, expect, it } from 'vitest';
import { createRelay } from '../../../main/bridge/relay.ts';
import type { Port, ServerFrame } from '../../../main/contract/port.ts';

/** A core's end of a link, worked by hand. */
function corePort() {
  const sent: unknown[] = [];
  let onFrame: (frame: unknown) => void = () => undefined;
  let onClose: () => void = () => undefined;
  const state = { isClosed: false };
  const port: Port = {
    send: (frame) => sent.push(frame),
    start: (frame, close) => {
      onFrame = frame;
      onClose = close;
    },
    close: () => {
      state.isClosed = true;
    },
  };
  return { port, sent, state, answer: (frame: ServerFrame) => onFrame(frame), die: () => onClose() };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));
const call = (id: number, channel: string) => ({ kind: 'call' as const, id, channel, args: {} });

function openRelay(open: () => Promise<Port>) {
  const toPage: ServerFrame[] = [];
  let numOpened = 0;
  const relay = createRelay({
    toPage: (frame) => toPage.push(frame),
    openCore: () => {
      numOpened += 1;
      return open();
    },
  });
  return { relay, toPage, numOpened: () => numOpened };
}

describe('the relay between a page and its two servers', () => {
  it('opens one link for calls that come at once and sends them in order', async () => {
    const core = corePort();
    const { relay, toPage, numOpened } = openRelay(() => Promise.resolve(core.port));
    relay.fromPage(call(1, 'runs:list'));
    relay.fromPage(call(2, 'datasets:list'));
    await settled();
    expect(numOpened()).toBe(1);
    expect(core.sent).toEqual([call(1, 'runs:list'), call(2, 'datasets:list')]);
    core.answer({ kind: 'result', id: 2, value: 'sets' });
    expect(toPage).toEqual([{ kind: 'result', id: 2, value: 'sets' }]);
  });

  it('keeps host calls here, also those that come before anybody listens', async () => {
    const core = corePort();
    const { relay, numOpened } = openRelay(() => Promise.resolve(core.port));
    relay.fromPage(call(1, 'host:info'));
    const heard: unknown[] = [];
    relay.hostPort.start(
      (frame) => heard.push(frame),
      () => undefined,
    );
    relay.fromPage({ kind: 'cancel', id: 1 });
    await settled();
    expect(heard).toEqual([call(1, 'host:info'), { kind: 'cancel', id: 1 }]);
    expect(numOpened()).toBe(0);
  });

  it('sends cancels and acknowledgements the way of their call, and none for a call that is over', async () => {
    const core = corePort();
    const { relay } = openRelay(() => Promise.resolve(core.port));
    relay.fromPage(call(7, 'runs:watch'));
    await settled();
    relay.fromPage({ kind: 'ack', id: 7 });
    await settled();
    core.answer({ kind: 'result', id: 7, value: null });
    relay.fromPage({ kind: 'cancel', id: 7 });
    relay.fromPage({ kind: 'ack', id: 99 });
    await settled();
    expect(core.sent).toEqual([call(7, 'runs:watch'), { kind: 'ack', id: 7 }]);
  });

  it('answers every open call when the core goes away, and opens anew for the next', async () => {
    const [first, second] = [corePort(), corePort()];
    const ports = [first.port, second.port];
    const { relay, toPage, numOpened } = openRelay(() => Promise.resolve(ports.shift()!));
    relay.fromPage(call(1, 'runs:list'));
    relay.fromPage(call(2, 'runs:watch'));
    await settled();
    first.die();
    expect(toPage.map((frame) => [frame.id, frame.kind])).toEqual([
      [1, 'error'],
      [2, 'error'],
    ]);
    expect(toPage[0]).toMatchObject({ error: { code: 'coreLost' } });
    relay.fromPage(call(3, 'runs:list'));
    await settled();
    expect(numOpened()).toBe(2);
    expect(second.sent).toEqual([call(3, 'runs:list')]);
  });

  it('says why a core could not be opened', async () => {
    const { relay, toPage } = openRelay(() => Promise.reject(new Error('no room')));
    relay.fromPage(call(1, 'runs:list'));
    await settled();
    expect(toPage).toMatchObject([{ kind: 'error', id: 1, error: { message: 'no room' } }]);
  });

  it('a closed page hears nothing, and its link ends', async () => {
    const core = corePort();
    const { relay, toPage } = openRelay(() => Promise.resolve(core.port));
    relay.fromPage(call(1, 'runs:list'));
    await settled();
    relay.close();
    core.answer({ kind: 'result', id: 1, value: [] });
    relay.fromPage(call(2, 'runs:list'));
    await settled();
    expect(toPage).toEqual([]);
    expect(core.sent).toHaveLength(1);
    expect(core.state.isClosed).toBe(true);
  });
});
