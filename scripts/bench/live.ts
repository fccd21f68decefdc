/**
 * A live run at a rate no engine reaches, drawn in the real window: `live.ts [--seconds 300] [--real 20] [--rate 1000]`.
 *
 * The core of this bench is the real one (handlers, database, recorder, socket) but for where its steps come from. First
 * the asked rate, 1,000 points a second over the charts' series: redraws a second of the busiest chart, processor share
 * of page and graphics. Then --rate steps a second for --seconds, by default 30 minutes' worth of points (1.8 million) in 300 s: memory
 * of the page after a collection and of each process, sampled all along. Ten hours of 1,000 points a second over 20 series,
 * 1.8 million steps, pass in five minutes with `--seconds 300 --rate 6000`. Prints one JSON object; exit code 1 where a
 * limit is passed.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import type { ElectronApplication, Page } from '@playwright/test';
import { runMetrics } from '../../main/contract/runs.ts';
import { openFedCore } from './fedCore.ts';
import { newHome, openWindow, removeHome, showRoute } from './openWindow.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    real: { type: 'string', default: '20' },
    rate: { type: 'string', default: '1000' },
  },
});
const limits = { redrawsPerSecond: 10.5, cores: 0.5, growthShare: 0.1 };
const real = Number(values.real);
const perSecond = Math.round(1000 / runMetrics.length);
const warmUpSeconds = 5;
/** At the asked rate the curves fill half of the chart; then the run goes on beyond its plan, and the axis with it. */
const plannedSteps = 2 * perSecond * (warmUpSeconds + real);
const home = newHome('live');
const core = await openFedCore(home, plannedSteps);
const { runId, train } = core;

const { app, page } = await openWindow(home, ['--js-flags=--expose-gc']);
await page.getByRole('contentinfo', { name: 'Status' }).getByText('Training').waitFor();
await showRoute(page, `/runs/${runId}/live`);
await page.locator('section.pn canvas').first().waitFor();
await countRedraws(page);

await train(perSecond, warmUpSeconds);
const [redrawsBefore, cpuBefore] = [await redrawsOf(page), await cpuOf(app)];
await train(perSecond, real);
const [redrawsAfter, cpuAfter] = [await redrawsOf(page), await cpuOf(app)];
const redraws = redrawsAfter.map((count, i) => (count - (redrawsBefore[i] ?? 0)) / real);
const pageCores = (cpuAfter.page - cpuBefore.page) / real;
const graphicsCores = (cpuAfter.graphics - cpuBefore.graphics) / real;
const cores = pageCores + graphicsCores;

const numSamples = 9;
const memory: number[] = [];
const processes: { page: number; graphics: number; main: number; core: number }[] = [];
let longestPauseMs = 0;
await watchPauses(page);
for (let i = 0; i < numSamples; i += 1) {
  await train(Number(values.rate), Number(values.seconds) / numSamples);
  memory.push(await heapOf(page));
  processes.push({ ...(await processMemory(app)), core: ownMemory() });
  longestPauseMs = Math.max(
    longestPauseMs,
    await page.evaluate(() => (window as unknown as { pauseMs: number }).pauseMs),
  );
}
const shown = Number(await page.locator('section.pn .cv').first().getAttribute('data-points'));
// The first third still fills the chart to its full number of points. A heap swings with when it was looked at: what
// grows is the middle of the last third over that of the one before.
const middleOf = (third: number) =>
  memory.slice((third * numSamples) / 3, ((third + 1) * numSamples) / 3).sort((a, b) => a - b)[1] ?? 0;
const growth = middleOf(2) / middleOf(1) - 1;
const result = {
  // One a metric, and under the loss's smoothed line its band and each value.
  series: runMetrics.length + 2,
  pointsPerSecond: perSecond * runMetrics.length,
  redrawsPerSecond: Number(Math.max(...redraws).toFixed(1)),
  coresOfPage: Number(pageCores.toFixed(2)),
  coresOfGraphics: Number(graphicsCores.toFixed(2)),
  soak: {
    steps: core.step(),
    points: core.step() * runMetrics.length,
    hoursOfTwentySeries: Number((core.step() / 50 / 3600).toFixed(1)),
    seconds: Number(values.seconds),
    heapMiB: memory.map((bytes) => Math.round(bytes / 2 ** 20)),
    growthShare: Number(growth.toFixed(3)),
    processesMiB: {
      page: processes.map((one) => one.page),
      graphics: processes.map((one) => one.graphics),
      main: processes.map((one) => one.main),
      // With this script's own part: the core of this bench runs in it.
      core: processes.map((one) => one.core),
    },
    longestPauseMs: Math.round(longestPauseMs),
    pointsShown: shown,
  },
  load: Number((loadavg()[0] ?? 0).toFixed(1)),
};
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
await app.close();
core.close();
removeHome(home);
const isFine =
  result.redrawsPerSecond <= limits.redrawsPerSecond && cores <= limits.cores && growth <= limits.growthShare;
process.exit(isFine ? 0 : 1);

/** Every clearing of a canvas is a redraw of its chart. */
async function countRedraws(target: Page): Promise<void> {
  await target.evaluate(() => {
    const counts = new Map<HTMLCanvasElement, number>();
    (window as unknown as { redraws: typeof counts }).redraws = counts;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its canvas below
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...area) {
      counts.set(this.canvas, (counts.get(this.canvas) ?? 0) + 1);
      clear.apply(this, area);
    };
  });
}
function redrawsOf(target: Page): Promise<number[]> {
  return target.evaluate(() => [
    ...(window as unknown as { redraws: Map<HTMLCanvasElement, number> }).redraws.values(),
  ]);
}

/** The longest time that the page's own thread did not come back to a timer. */
async function watchPauses(target: Page): Promise<void> {
  await target.evaluate(() => {
    const state = window as unknown as { pauseMs: number };
    state.pauseMs = 0;
    let last = performance.now();
    setInterval(() => {
      const now = performance.now();
      state.pauseMs = Math.max(state.pauseMs, now - last - 20);
      last = now;
    }, 20);
  });
}

/** Processor seconds so far of the page and of what draws it. */
async function cpuOf(target: ElectronApplication): Promise<{ page: number; graphics: number }> {
  const pids = await target.evaluate(({ app: electron }) =>
    electron.getAppMetrics().map(({ type, pid }) => ({ type, pid })),
  );
  const secondsOf = (wanted: string) =>
    pids.reduce((sum, { type, pid }) => {
      if (type !== wanted) return sum;
      const fields = readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
        .replace(/.*\) /s, '')
        .split(' ');
      return sum + (Number(fields[11]) + Number(fields[12])) / 100;
    }, 0);
  return { page: secondsOf('Tab'), graphics: secondsOf('GPU') };
}

/** Proportional set size by process, MiB: pages that several share count once. */
async function processMemory(target: ElectronApplication) {
  const pids = await target.evaluate(({ app: electron }) =>
    electron.getAppMetrics().map(({ type, pid }) => ({ type, pid })),
  );
  const of = (wanted: string) =>
    Math.round(
      pids.reduce((sum, { type, pid }) => {
        if (type !== wanted) return sum;
        const rollup = readFileSync(`/proc/${String(pid)}/smaps_rollup`, 'utf8');
        return sum + Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) / 1024;
      }, 0),
    );
  return { page: of('Tab'), graphics: of('GPU'), main: of('Browser') };
}

function heapOf(target: Page): Promise<number> {
  return target.evaluate(() => {
    (globalThis as unknown as { gc?: () => void }).gc?.();
    return (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize;
  });
}

/** MiB of this process without the pages of the mapped database file, which the system takes back when it wants. */
function ownMemory(): number {
  const anonymous = /RssAnon:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Math.round(Number(anonymous) / 1024);
}
