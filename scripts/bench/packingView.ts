/**
 * Zooming and panning through 20,000 bins of two plans in the real window: frames a second, and what the page's thread
 * computes for one, by its processor clock. Exit code 1 where that is more than a sixtieth of a second.
 *
 *   TESSERA_ELECTRON_PROGRAM=… xvfb-run node scripts/bench/packingView.ts
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { _electron } from '@playwright/test';
import { attachCore } from '../../main/core/attach.ts';

const program = process.env.TESSERA_ELECTRON_PROGRAM;
if (program === undefined) throw new Error('TESSERA_ELECTRON_PROGRAM names no Electron');
const numChats = 48_000;
const budget = 192;
const seconds = 4;
const limitMs = 1000 / 60;

const home = mkdtempSync(join(tmpdir(), 'tessera-packing-'));
const path = join(home, 'many.jsonl');
const words = (count: number) => 'a few more words about it '.repeat(count).trim();
const chats = Array.from({ length: numChats }, (_, i) => {
  const messages = [
    { role: 'user', content: `Question ${String(i)}: ${words(1 + (i % 5))}?` },
    { role: 'assistant', content: words(1 + ((i * 7) % 11)) },
  ];
  return `${JSON.stringify({ messages })}\n`;
});
writeFileSync(path, chats.join(''));

const app = await _electron.launch({
  executablePath: program,
  args: [resolve(import.meta.dirname, '../..'), '--home', home],
  env: {
    ...(process.env as Record<string, string>),
    TESSERA_NO_DIALOGS: '1',
    ...(process.getuid?.() === 0 && { ELECTRON_DISABLE_SANDBOX: '1' }),
  },
});
let busyMs = Infinity;
try {
  const page = await app.firstWindow();
  const core = await attachCore(home);
  const { dataset } = await core.call('datasets:import', { paths: [path] });
  core.close();
  await page.evaluate(
    (route) => {
      location.hash = route;
    },
    `/packing?dataset=${dataset.id}&budget=${String(budget)}`,
  );
  const canvas = page.locator('canvas.pk-canvas').last();
  await canvas.waitFor({ timeout: 60_000 });
  await page
    .getByText(/bins 1 to/)
    .first()
    .waitFor();
  const bins = Number((await canvas.getAttribute('aria-label'))?.replaceAll(/[^0-9]/g, ''));

  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const busySeconds = async () =>
    (await cdp.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'ThreadTime')?.value ?? 0;
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
    return { ...found, framesPerSecond: (1000 * found.frames) / found.tookMs, msOfWorkAFrame: ms };
  };
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
  busyMs = Math.max(...[zoom, panTexture, panTiles].map(({ msOfWorkAFrame }) => msOfWorkAFrame));
  const report = {
    bins,
    examples: numChats,
    zoom,
    panTexture,
    panTiles,
    limitMs,
    load: loadavg()[0],
  };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
} finally {
  await app.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
process.exitCode = busyMs < limitMs ? 0 : 1;
