/**
 * Zooming and panning through 20,000 bins of two plans in the real window: frames a second, and what the page's thread
 * computes for one, by its processor clock. Exit code 1 where that is more than a sixtieth of a second.
 *
 *   TESSERA_ELECTRON_PROGRAM=… xvfb-run node scripts/bench/packingView.ts
 */
import { loadavg } from 'node:os';
import {
  frameMs,
  importLines,
  newHome,
  openWindow,
  pageMetrics,
  removeHome,
  showRoute,
} from './openWindow.ts';

const numChats = 48_000;
const budget = 192;
const seconds = 4;

const home = newHome('packing');
const words = (count: number) => 'a few more words about it '.repeat(count).trim();
const chats = Array.from({ length: numChats }, (_, i) => {
  const messages = [
    { role: 'user', content: `Question ${String(i)}: ${words(1 + (i % 5))}?` },
    { role: 'assistant', content: words(1 + ((i * 7) % 11)) },
  ];
  return `${JSON.stringify({ messages })}\n`;
});

const { app, page } = await openWindow(home);
let busyMs = Infinity;
try {
  const dataset = await importLines(home, chats);
  await showRoute(page, `/packing?dataset=${dataset}&budget=${String(budget)}`);
  const canvas = page.locator('canvas.pk-canvas').last();
  await canvas.waitFor({ timeout: 60_000 });
  await page
    .getByText(/bins 1 to/)
    .first()
    .waitFor();
  const bins = Number((await canvas.getAttribute('aria-label'))?.replaceAll(/[^0-9]/g, ''));

  const measure = await pageMetrics(page);
  const busySeconds = async () => (await measure()).get('ThreadTime') ?? 0;
  /** One wheel event a frame: in and out over the whole range, or down over the bins. */
  const run = async (kind: 'zoom' | 'pan') => {
    const before = await busySeconds();
    const found = await canvas.evaluate(
      async (element, { durationMs, kind: wanted }) => {
        const drawnBefore = Number(element.dataset.frames);
        const levels = new Set<string | undefined>();
        let frames = 0;
        const { width, height, left, top } = element.getBoundingClientRect();
        const startedAtMs = performance.now();
        for (const end = startedAtMs + durationMs; performance.now() < end; frames++) {
          await new Promise(requestAnimationFrame);
          // As a hand's events come: between two frames. Sent from within one, only every second would be drawn.
          await new Promise((resolve) => setTimeout(resolve));
          const isOut = Math.floor(frames / 60) % 2 === 1;
          element.dispatchEvent(
            new WheelEvent('wheel', {
              deltaY: wanted === 'pan' ? 60 : isOut ? 80 : -80,
              shiftKey: wanted === 'pan',
              clientX: left + width * 0.4,
              clientY: top + height * 0.6,
              bubbles: true,
              cancelable: true,
            }),
          );
          levels.add(element.dataset.level);
        }
        const tookMs = performance.now() - startedAtMs;
        return { frames, tookMs, levels: [...levels], drawn: Number(element.dataset.frames) - drawnBefore };
      },
      { durationMs: seconds * 1000, kind },
    );
    const ms = (1000 * ((await busySeconds()) - before)) / found.frames;
    const picturesPerSecond = (1000 * found.drawn) / found.tookMs;
    return { ...found, picturesPerSecond, msOfWorkAFrame: ms };
  };
  // The first time includes what is compiled, the textures and the first words.
  const zoomFirst = await run('zoom');
  const zoom = await run('zoom');
  const wheel = async (deltaY: number, times: number) => {
    const box = await canvas.boundingBox();
    if (box === null) throw new Error('the picture is not shown');
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    for (let i = 0; i < times; i++) await page.mouse.wheel(0, deltaY);
  };
  await wheel(400, 30);
  await wheel(-100, 6);
  const panTexture = await run('pan');
  await wheel(400, 30);
  await wheel(-100, 30);
  const panTiles = await run('pan');
  busyMs = Math.max(...[zoomFirst, zoom, panTexture, panTiles].map(({ msOfWorkAFrame }) => msOfWorkAFrame));
  const report = {
    bins,
    examples: numChats,
    zoomFirst,
    zoom,
    panTexture,
    panTiles,
    limitMs: frameMs,
    load: loadavg()[0],
  };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
} finally {
  await app.close();
  removeHome(home);
}
process.exitCode = busyMs < frameMs ? 0 : 1;
