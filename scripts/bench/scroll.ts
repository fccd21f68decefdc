/**
 * Scrolling through 200,000 rows in the real window: frames a second, and what the page's thread computes for one, by
 * its processor clock. Exit code 1 where that is more than a sixtieth of a second.
 *
 *   TESSERA_ELECTRON_PROGRAM=… xvfb-run node scripts/bench/scroll.ts
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

const numRows = 200_000;
const seconds = 4;
const home = newHome('scroll');
const rows = Array.from({ length: numRows }, (_, i) => `{"text":"row ${String(i + 1)} of a long list"}\n`);
const { app, page } = await openWindow(home);
let busyMs = Infinity;
try {
  await showRoute(page, `/datasets/${await importLines(home, rows)}/rows`);
  const grid = page.getByRole('grid', { name: 'Rows', exact: true });
  await grid.getByRole('row').first().waitFor();

  const measure = await pageMetrics(page);
  const before = await measure();
  const frames = await grid.evaluate(async (scroller, durationMs) => {
    let count = 0;
    for (const end = performance.now() + durationMs; performance.now() < end; count++) {
      await new Promise(requestAnimationFrame);
      scroller.scrollTop += 120;
    }
    return count;
  }, seconds * 1000);
  const after = await measure();
  const msAFrame = (name: string) => (1000 * ((after.get(name) ?? 0) - (before.get(name) ?? 0))) / frames;
  busyMs = msAFrame('ThreadTime');
  // By the wall clock, so that other work on the machine counts with them.
  const parts = ['ScriptDuration', 'RecalcStyleDuration', 'LayoutDuration', 'TaskDuration'];
  const wallMs = Object.fromEntries(parts.map((name) => [name, msAFrame(name)]));
  const found = { rows: numRows, framesPerSecond: frames / seconds, msOfWorkAFrame: busyMs, wallMs };
  process.stdout.write(`${JSON.stringify({ ...found, limitMs: frameMs, load: loadavg()[0] }, null, 2)}\n`);
} finally {
  await app.close();
  removeHome(home);
}
process.exitCode = busyMs < frameMs ? 0 : 1;
