import { describe, expect, it } from 'vitest';
import { openDatabase, type Db } from '../../../db/connection.ts';
import { telemetryQueries } from '../../../db/queries/telemetry.ts';
import type { Telemetry } from '../../../main/contract/telemetry.ts';
import { gpuTotals, mergeTelemetry } from '../../../main/core/telemetry/readTelemetry.ts';
import { TelemetryRecorder } from '../../../main/core/telemetry/recorder.ts';

const host = { cpuUtilization: 0.5, memoryBytes: 4e9, memoryTotalBytes: 8e9, diskFreeBytes: 1e12 };
const startMs = 1_800_000_000_000;

async function recorded(): Promise<{
  db: Db;
  recorder: TelemetryRecorder;
  add: (event: Partial<Telemetry>) => void;
}> {
  const db = await openDatabase(':memory:');
  db.prepare(
    `INSERT INTO runs (id, name, status, createdAtMs, recipe, hashes, plan, folder, plannedSteps)
     VALUES ('r', 'r', 'running', 0, '{}', '{}', '{}', '', 1)`,
  ).run();
  const recorder = new TelemetryRecorder(telemetryQueries(db), () => undefined);
  const add = (event: Partial<Telemetry>) => {
    recorder.add('r', { atMs: startMs, gpus: [], host, ...event }, true);
  };
  return { db, recorder, add };
}
const series = (db: Db, maxPoints = 600) => mergeTelemetry(telemetryQueries(db).read('r'), maxPoints);

describe('stored telemetry', () => {
  it('comes back as it was, with every extreme, absent where a GPU did not say', async () => {
    const { db, recorder, add } = await recorded();
    for (let i = 0; i < 3000; i += 1)
      add({
        atMs: startMs + i * 100,
        gpus: [
          {
            device: 'cuda:0',
            utilization: i === 1717 ? 3 : 97,
            energyJ: 1000 + i,
            memoryBytes: i === 5 ? 9e9 : 1e9,
          },
          // One that learns to tell its power in the middle, and vanishes at the end.
          i < 2000
            ? { device: 'cuda:1', ...(i >= 1000 && { powerW: 250 }) }
            : { device: 'cuda:1', lost: true },
        ],
      });
    recorder.close();
    const all = series(db, 100);
    const of = (source: string, field: string) =>
      all.find((each) => each.source === source && each.field === field);
    expect(of('gpu0', 'utilization')?.atMs).toHaveLength(100);
    expect(Math.min(...(of('gpu0', 'utilization')?.minimum ?? []))).toBe(3);
    const power = of('gpu1', 'powerW');
    expect(power?.atMs[0]).toBeGreaterThanOrEqual(startMs + 100_000);
    expect(power?.atMs.at(-1)).toBeLessThan(startMs + 200_000);
    expect(of('gpu1', 'utilization')).toBeUndefined();
    expect(of('host', 'cpuUtilization')?.mean[0]).toBe(0.5);
    const totals = telemetryQueries(db).readTotals('r');
    for (const device of ['cuda:0', 'cuda:0,1', 'cuda:1,0', undefined])
      expect(gpuTotals(totals, device)).toEqual({ energyJ: 2999, peakGpuBytes: 9e9 });
    // What others did on a GPU meanwhile is not the run's.
    for (const device of ['cpu', 'cuda:1']) expect(gpuTotals(totals, device)).toEqual({});
    db.close();
  });

  it("counts the energy of the run's own time, though its counter is read every three seconds", async () => {
    const { db, recorder, add } = await recorded();
    // 500 W all along; the first reading of the counter is 2.6 s old, from when the GPU took more.
    for (let i = 0; i <= 160; i += 1) {
      const readAt = i < 4 ? -1453 : 50 * (i - ((i - 4) % 30));
      add({
        atMs: startMs + i * 100,
        gpus: [{ device: 'cuda:0', powerW: 500, energyJ: 1e5 + readAt }],
      });
    }
    recorder.close();
    const { energyJ } = gpuTotals(telemetryQueries(db).readTotals('r'), 'cuda:0');
    expect(energyJ).toBeCloseTo(8000, 6);
    db.close();
  });

  it('is written every five seconds, so that little is lost with a core that dies', async () => {
    const { db, add } = await recorded();
    for (let i = 0; i <= 60; i += 1)
      add({ atMs: startMs + i * 100, gpus: [{ device: 'cuda:0', utilization: i }] });
    expect(
      Math.max(...(series(db).find(({ source }) => source === 'gpu0')?.maximum ?? [])),
    ).toBeGreaterThanOrEqual(50);
    db.close();
  });

  it('holds over a clock that jumps back', async () => {
    const { db, recorder, add } = await recorded();
    add({ atMs: startMs });
    add({ atMs: startMs - 3_600_000 });
    add({ atMs: startMs - 3_599_000 });
    recorder.close();
    const cpu = series(db).find(({ field }) => field === 'cpuUtilization');
    expect(cpu?.mean.reduce((sum, value) => sum + value, 0)).toBeGreaterThan(0);
    const counts = telemetryQueries(db)
      .read('r')
      .filter(({ field }) => field === 'cpuUtilization')
      .map(({ values }) => values.length);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3);
    db.close();
  });

  it('waits in memory while the history cannot be written, and is written then', async () => {
    const db = await openDatabase(':memory:');
    const real = telemetryQueries(db);
    db.prepare(
      `INSERT INTO runs (id, name, status, createdAtMs, recipe, hashes, plan, folder, plannedSteps)
       VALUES ('r', 'r', 'running', 0, '{}', '{}', '{}', '', 1)`,
    ).run();
    let isFull = true;
    const log: string[] = [];
    const put: typeof real.put = (...args) => {
      if (isFull) throw new Error('database or disk is full');
      real.put(...args);
    };
    const recorder = new TelemetryRecorder({ ...real, put }, (line) => log.push(line));
    for (let i = 0; i < 100; i += 1) recorder.add('r', { atMs: startMs + i * 1000, gpus: [], host }, true);
    expect(log).toHaveLength(1);
    isFull = false;
    recorder.close();
    const count = real.read('r').filter(({ field }) => field === 'memoryBytes');
    expect(count.reduce((sum, { values }) => sum + values.length, 0)).toBe(100);
    db.close();
  });
});
