import { maxWaitingUpdates } from '../../main/contract/runs.ts';
import type { Port } from '../../main/contract/port.ts';
import { socketPort } from '../../main/core/ports.ts';
import { openFedCore } from '../../scripts/bench/fedCore.ts';
import { expect, show, test, untilReady } from './fixture.ts';

const perSecond = 10_000;
const seconds = 2;

/** Counts what goes over every stream of a core's links, and how much of it was not answered for. */
function watchStreams() {
  const sent = new Map<string, { events: number; dropped: number }>();
  const open = new Map<string, number>();
  const most = { unanswered: 0, batch: 0 };
  let numLinks = 0;
  const portOf = (socket: Parameters<typeof socketPort>[0]): Port => {
    const link = (numLinks += 1);
    const port = socketPort(socket);
    return {
      ...port,
      send: (frame) => {
        if (frame.kind === 'events') {
          const key = `${link}/${frame.id}`;
          const sum = sent.get(key) ?? { events: 0, dropped: 0 };
          const steps = frame.events.filter((event) => (event as { kind?: string }).kind === 'step').length;
          sent.set(key, { events: sum.events + steps, dropped: sum.dropped + frame.numDropped });
          open.set(key, (open.get(key) ?? 0) + 1);
          most.unanswered = Math.max(most.unanswered, open.get(key) ?? 0);
          most.batch = Math.max(most.batch, frame.events.length);
        }
        port.send(frame);
      },
      start: (onFrame, onClose) => {
        port.start((raw) => {
          const frame = raw as { kind?: string; id?: number };
          if (frame.kind === 'ack') open.set(`${link}/${frame.id}`, 0);
          onFrame(raw);
        }, onClose);
      },
    };
  };
  return { portOf, most, totals: () => [...sent.values()].filter(({ events }) => events > 0) };
}

test('ten thousand events a second leave the window usable, and nothing piles up', async ({ home, open }) => {
  const streams = watchStreams();
  const core = await openFedCore(home, perSecond * seconds, streams.portOf);
  try {
    const { page } = await open();
    await untilReady(page);
    await show(page, `/runs/${core.runId}`);
    const loss = page.locator('section.pn', { hasText: 'nats per supervised token' }).locator('.cv');
    await expect(loss).toHaveAttribute('data-points', '0');

    const flood = core.train(perSecond, seconds);
    // A click in the middle of it is answered, and so is the way back.
    await expect.poll(() => core.step()).toBeGreaterThan(perSecond / 2);
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Machine' }).click();
    await expect(page.getByRole('heading', { name: 'Machine' })).toBeVisible();
    await page.goBack();
    await flood;

    const strip = page.getByRole('contentinfo', { name: 'Status' });
    await expect(strip).toContainText(/20,000\s*of 20,000/);
    await expect(page.locator('header.top')).toContainText('Step 20,000 of 20,000');
    // The main process, the status strip and the run's own view: each was told of every step, or of how many it missed.
    await expect
      .poll(() => streams.totals().map(({ events, dropped }) => events + dropped))
      .toEqual([core.step(), core.step(), core.step()]);
    expect(streams.most.unanswered).toBe(1);
    expect(streams.most.batch).toBeLessThanOrEqual(maxWaitingUpdates);
    // 20,000 steps, of which the page holds some thousand points: blocks of them with their extremes.
    const points = async () => Number(await loss.getAttribute('data-points'));
    await expect.poll(points).toBeLessThan(6000);
    expect(await points()).toBeGreaterThan(1000);
  } finally {
    core.close();
  }
});
