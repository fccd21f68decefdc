// Ten hours of training at 1,000 points a second, as fast as they can be written: what the core keeps of them in
// memory, and what they cost. Three metrics of each step are points of their own; a run has twenty series at most.
//   node scripts/bench/soak.ts [hours] [pointsPerSecond] [series]       default 10 1000 20
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../db/connection.ts';
import { runQueries } from '../../db/queries/runs.ts';
import { seriesQueries } from '../../db/queries/series.ts';
import { RunRecorder } from '../../main/core/runs/recorder.ts';

const [hours = 10, pointsPerSecond = 1000, numSeries = 20] = process.argv.slice(2).map(Number);
const stepsPerSecond = pointsPerSecond / numSeries;
const numSteps = Math.round(hours * 3600 * stepsPerSecond);
/** A flush each quarter of a second of the time that is acted out. */
const batch = Math.max(1, Math.round(stepsPerSecond / 4));

const home = mkdtempSync(join(tmpdir(), 'tessera-soak-'));
try {
  const file = join(home, 'tessera.sqlite');
  const db = await openDatabase(file);
  const runs = runQueries(db);
  const series = seriesQueries(db);
  runs.insert({
    ...{ id: 'soak', name: 'soak', kind: 'train', createdAtMs: 0, recipe: '{}', hashes: '{}', plan: '{}' },
    ...{ preflight: null, folder: home, plannedSteps: numSteps, codeVersion: null },
  });
  const recorder = new RunRecorder('soak', runs, series, { onFlush: () => undefined });
  /** Memory of its own, without the pages of the mapped database file, which the system takes back when it wants. */
  const memory = () => {
    globalThis.gc?.();
    const anonymous = /RssAnon:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return Number(anonymous) / 1024;
  };
  const began = process.cpuUsage();
  const tenth = Math.floor(numSteps / 10);
  let used = 0;
  process.stdout.write(
    'hours      steps     own MiB    processor share at speed  file MiB  reading 2,000 points ms\n',
  );
  for (let step = 1; step <= numSteps; step += 1) {
    recorder.step({
      ...{
        step,
        atMs: step,
        loss: 2 + Math.sin(step / 1000),
        gradNorm: 1,
        learningRate: 1e-5,
        supervisedTokens: 100,
      },
      ...{ realTokens: 200, positions: 256, milliseconds: 1000 / stepsPerSecond, flops: 1e9 },
      elapsedMs: (step * 1000) / stepsPerSecond,
    });
    if (step % batch === 0) {
      recorder.flush();
      // As in life, the event loop turns between two flushes.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (step % tenth !== 0) continue;
    const { user, system } = process.cpuUsage(began);
    const share = ((user + system) / 1e6 - used) / (tenth / stepsPerSecond);
    used = (user + system) / 1e6;
    const startedMs = performance.now();
    series.read('soak', 'loss', 2000, { axis: 'tokens' });
    const readMs = performance.now() - startedMs;
    process.stdout.write(
      `${((step / numSteps) * hours).toFixed(1).padStart(5)} ${step.toLocaleString('en-US').padStart(10)} ${memory().toFixed(0).padStart(13)} ${(share * 100).toFixed(1).padStart(23)} % ${(statSync(file).size / 2 ** 20).toFixed(0).padStart(9)} ${readMs.toFixed(1).padStart(24)}\n`,
    );
  }
  await recorder.done();
  const { steps, lastLoss } = series.totals('soak');
  process.stdout.write(
    `${steps.toLocaleString('en-US')} steps kept, last loss ${String(lastLoss?.toFixed(4))}\n`,
  );
  db.close();
} finally {
  rmSync(home, { recursive: true, force: true });
}
