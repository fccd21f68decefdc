/**
 * Scrolling through 200,000 rows in the real window: frames a second, and what the page's thread computes for one, by
 * its processor clock. Exit code 1 where that is more than a sixtieth of a second.
 *
 *   TESSERA_ELECTRON_PROGRAM=… xvfb-run node scripts/bench/scroll.ts
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { _electron } from '@playwright/test';
import { attachCore } from '../../main/core/attach.ts';

const program = process.env.TESSERA_ELECTRON_PROGRAM;
if (program === undefined) throw new Error('TESSERA_ELECTRON_PROGRAM names no Electron');
const numRows = 200_000;
const seconds = 4;
const limitMs = 1000 / 60;

const home = mkdtempSync(join(tmpdir(), 'tessera-scroll-'));
const path = join(home, 'many.jsonl');
const rows = Array.from({ length: numRows }, (_, i) => `{"text":"row ${String(i + 1)} of a long list"}\n`);
writeFileSync(path, rows.join(''));

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
  await page.evaluate((route) => {
    location.hash = route;
  }, `/datasets/${dataset.id}/rows`);
  const grid = page.getByRole('grid', { name: 'Rows', exact: true });
  await grid.getByRole('row').first().waitFor();

  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const measure = async () =>
    new Map((await cdp.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));
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
  process.stdout.write(`${JSON.stringify({ ...found, limitMs, load: loadavg()[0] }, null, 2)}\n`);
} finally {
  await app.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
process.exitCode = busyMs < limitMs ? 0 : 1;
