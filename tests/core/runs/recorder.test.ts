import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openDatabase, type Db } from '../../../db/connection.ts';
import { runQueries, type StepRow } from '../../../db/queries/runs.ts';
import { seriesQueries } from '../../../db/queries/series.ts';
import { RunRecorder, type EngineStep } from '../../../main/core/runs/recorder.ts';

let db: Db;
let path: string;
beforeEach(async () => {
  path = join(mkdtempSync(join(tmpdir(), 'tessera-recorder-')), 'tessera.sqlite');
  db = await openDatabase(path);
  db.pragma('busy_timeout = 50');
  runQueries(db).insert({
    ...{
      id: 'a',
      name: 'a',
      kind: 'train',
      createdAtMs: 1,
      recipe: '{}',
      hashes: '{}',
      plan: '{}',
      preflight: null,
    },
    ...{ folder: '/tmp', plannedSteps: 1, codeVersion: null },
  });
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  db.close();
});

const step = (number: number, more: Partial<EngineStep> = {}): EngineStep => ({
  ...{ step: number, atMs: 1000 * number, loss: 2, gradNorm: 1, learningRate: 1e-3, supervisedTokens: 5 },
  ...{ realTokens: 10, positions: 12, milliseconds: 100, flops: 1e6, elapsedMs: 110 * number },
  ...more,
});

const stored = () => db.prepare('SELECT * FROM runSteps ORDER BY step').all() as StepRow[];

function record() {
  const said: string[] = [];
  const recorder = new RunRecorder('a', runQueries(db), seriesQueries(db), {
    onFlush: () => undefined,
    onBlocked: (error) => said.push(error.message),
    onWrittenAgain: () => said.push('written again'),
  });
  return { recorder, said };
}

describe('a disk that is full', () => {
  it('lets the run go on, says so once, and loses nothing', async () => {
    const { recorder, said } = record();
    for (let number = 1; number <= 10; number += 1) recorder.step(step(number));
    recorder.flush();
    expect(said).toEqual([]);
    // SQLite's own limit: beyond it every write fails as on a full disk.
    const pages = db.pragma('page_count', { simple: true }) as number;
    db.pragma(`max_page_count = ${pages}`);
    for (let number = 11; number <= 5000; number += 1) recorder.step(step(number));
    recorder.flush();
    recorder.write(() => {
      runQueries(db).addEvent('a', { atMs: 5, step: 5000, kind: 'checkpoint', data: '{}' });
    });
    await vi.advanceTimersByTimeAsync(5000);
    expect(said).toEqual(['database or disk is full']);
    const held = seriesQueries(db).totals('a').steps;
    expect(held).toBeLessThan(5000);

    db.pragma('max_page_count = 1000000');
    const done = recorder.done();
    await vi.advanceTimersByTimeAsync(2500);
    await done;
    expect(said).toEqual(['database or disk is full', 'written again']);
    expect(seriesQueries(db).totals('a')).toMatchObject({ steps: 5000, realTokens: 50_000 });
    expect(stored().map((row) => row.step)).toEqual(Array.from({ length: 5000 }, (_, index) => index + 1));
    expect(runQueries(db).events('a')).toHaveLength(1);
  });
});

describe('a history that another program holds', () => {
  it('waits for it', async () => {
    const { recorder, said } = record();
    const other = new Database(path);
    other.exec('BEGIN IMMEDIATE');
    recorder.step(step(1));
    recorder.flush();
    expect(said).toEqual(['database is locked']);
    other.exec('COMMIT');
    other.close();
    await vi.advanceTimersByTimeAsync(2500);
    expect(seriesQueries(db).totals('a').steps).toBe(1);
  });
});

describe('clocks', () => {
  it('keeps order and time of training when the wall clock jumps back', async () => {
    const { recorder } = record();
    recorder.step(step(1, { atMs: 9_000_000 }));
    recorder.step(step(2, { atMs: 1_000 }));
    recorder.step(step(3, { atMs: 2_000 }));
    await recorder.done();
    const rows = stored();
    expect(rows.map((row) => row.step)).toEqual([1, 2, 3]);
    expect(rows.map((row) => row.elapsedMs)).toEqual([110, 220, 330]);
    expect([...seriesQueries(db).read('a', 'loss', 10, { axis: 'elapsed' }).x]).toEqual([110, 220, 330]);
  });

  it('goes on counting where a resumed run left off', async () => {
    const first = record().recorder;
    for (const number of [1, 2, 3]) first.step(step(number));
    await first.done();
    const second = record().recorder;
    // From the checkpoint of step 2, by an engine whose clock begins anew.
    const again = second.step(step(3, { elapsedMs: 90 }));
    await second.done();
    expect(again).toMatchObject({ elapsedMs: 310, realTokensTotal: 30, flopsTotal: 3e6 });
    expect(seriesQueries(db).totals('a')).toMatchObject({ steps: 3, elapsedMs: 310 });
  });
});
