import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase, assertIndexed, type Db } from '../../db/connection.ts';
import { listSql, runQueries, type NewRun, type StepRow } from '../../db/queries/runs.ts';
import { addTotals, fineRows, seriesQueries, type MeasuredStep } from '../../db/queries/series.ts';

let db: Db;
beforeEach(async () => {
  db = await openDatabase(':memory:');
});
afterEach(() => {
  db.close();
});

const run = (id: string): NewRun => ({
  id,
  name: id,
  kind: 'train',
  createdAtMs: 1,
  recipe: '{"model":"m"}',
  hashes: '{}',
  plan: '{}',
  preflight: null,
  folder: '/tmp',
  plannedSteps: 1,
  codeVersion: '0.1.0',
});

const step = (number: number, loss = number, supervisedTokens = 10): MeasuredStep => ({
  step: number,
  atMs: number,
  loss,
  gradNorm: 1,
  learningRate: 0.1,
  supervisedTokens,
  realTokens: 100,
  positions: 128,
  milliseconds: 50,
  flops: 1e9,
  elapsedMs: number * 60,
});

/** Steps with the totals of their run, going on after `previous`. */
function withTotals(steps: MeasuredStep[], previous?: StepRow): StepRow[] {
  const rows: StepRow[] = [];
  for (const one of steps) rows.push(addTotals(rows.at(-1) ?? previous, one));
  return rows;
}

describe('series', () => {
  it('shows a stretch of a long run nearly as finely as it may, with every extreme', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    const bad = [4000, 4001];
    const value = (number: number) =>
      number === 3333 ? 99 : bad.includes(number) ? Number.NaN : 1 + (number % 7) / 10;
    series.append('a', withTotals(Array.from({ length: 8000 }, (_, i) => step(i + 1, value(i + 1)))));
    // 5,000 steps are 313 blocks of 16, too few for 1,000 points: single steps are, five at a time.
    const options = { fromStep: 2001, toStep: 7000 };
    for (const axis of ['step', 'tokens', 'wall'] as const) {
      const part = series.read('a', 'loss', 1000, { ...options, axis });
      expect(part.steps.length).toBe(1000);
      expect(part.blockSteps).toBe(5);
      expect(part.maximum.filter((high) => high === 99)).toHaveLength(1);
      expect(Math.min(...part.minimum)).toBe(1);
      expect(part.numNonFinite.reduce((sum, count) => sum + count, 0)).toBe(2);
      expect([...part.x]).toEqual([...part.x].sort((a, b) => a - b));
      const at = part.numNonFinite.findIndex((count) => count > 0);
      expect(part.mean[at]).toBeCloseTo((value(3997) + value(3998) + value(3999)) / 3, 0);
    }
    expect(series.read('a', 'loss', 1000, { maxRows: 7999 }).blockSteps).toBe(16);
    // The whole run too, where that many rows may be read.
    const whole = series.read('a', 'loss', 1000, { maxRows: 8000 });
    expect([whole.blockSteps, whole.steps.length]).toEqual([8, 1000]);
    expect(Math.max(...whole.maximum)).toBe(99);
    expect(whole.numNonFinite.reduce((sum, count) => sum + count, 0)).toBe(2);
  });

  it('is as fine over tokens as over steps, each point where its step lies, however the run sped up', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('b'));
    const tokensOf = (number: number) => (number < 3000 ? 10 : number < 3050 ? 9000 : 40 + (number % 9));
    const rows = withTotals(
      Array.from({ length: 8000 }, (_, i) => ({ ...step(i + 1, 1), realTokens: tokensOf(i + 1) })),
    );
    series.append('b', rows);
    const bySteps = series.read('b', 'loss', 300, { maxRows: 600 });
    const byTokens = series.read('b', 'loss', 300, { maxRows: 600, axis: 'tokens' });
    expect(byTokens.steps).toEqual(bySteps.steps);
    expect(bySteps.blockSteps).toBe(32);
    const all = rows.at(-1)?.realTokensTotal ?? 0;
    const off = [...byTokens.x].map((x, i) =>
      Math.abs(x - (rows[Math.floor(byTokens.steps[i] ?? 0) - 1]?.realTokensTotal ?? 0)),
    );
    expect(Math.max(...off)).toBeLessThan(all / 1000);
  });

  it('keeps a single spike at every level', () => {
    const runs = runQueries(db);
    const series = seriesQueries(db);
    runs.insert(run('a'));
    const rows = withTotals(
      Array.from({ length: 20_000 }, (_, index) => step(index + 1, index === 12_345 ? 99 : 1)),
    );
    for (let at = 0; at < rows.length; at += 777) series.append('a', rows.slice(at, at + 777));
    for (const maxPoints of [100_000, 1000, 10]) {
      const { maximum, minimum, steps, mean } = series.read('a', 'loss', maxPoints);
      expect(steps.length).toBeLessThanOrEqual(1.25 * maxPoints);
      expect(Math.max(...maximum)).toBe(99);
      expect(Math.min(...minimum)).toBe(1);
      expect(Math.max(...mean)).toBeGreaterThan(1);
    }
    expect(series.read('a', 'tokensPerSecond', 1000).mean[0]).toBeCloseTo(2000);
  });

  it('forgets what a resumed run does again, in the roll-ups too', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    series.append('a', withTotals(Array.from({ length: 300 }, (_, index) => step(index + 1))));
    series.truncate('a', 100);
    const again = Array.from({ length: 200 }, (_, index) => step(101 + index, 500));
    series.append('a', withTotals(again, series.at('a', 100)));
    const rolled = series.read('a', 'loss', 20);
    expect(rolled.blockSteps).toBe(16);
    expect([...rolled.maximum].slice(0, 8)).toEqual([16, 32, 48, 64, 80, 96, 500, 500]);
    expect([...rolled.minimum].slice(0, 8)).toEqual([1, 17, 33, 49, 65, 81, 97, 500]);
    expect(rolled.mean[6]).toBeCloseTo((97 + 98 + 99 + 100 + 12 * 500) / 16);
  });

  it('weighs losses by tokens over the first and the last twentieth', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    const rows = Array.from({ length: 40 }, (_, index) => step(index + 1, 5, 10));
    rows[0] = step(1, 6, 30);
    rows[1] = step(2, 2, 10);
    rows[39] = step(40, 1, 1);
    series.append('a', withTotals(rows));
    const totals = series.totals('a');
    expect(totals.firstLoss).toBeCloseTo(5);
    expect(totals.lastLoss).toBeCloseTo((5 * 10 + 1) / 11);
    expect(totals).toMatchObject({ steps: 40, realTokens: 4000, milliseconds: 2000 });
  });

  it('draws the same points over tokens, time and floating-point operations', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    series.append('a', withTotals(Array.from({ length: 300 }, (_, index) => step(index + 1))));
    for (const maxPoints of [1000, 20]) {
      const { steps } = series.read('a', 'loss', maxPoints);
      const over = (axis: 'tokens' | 'elapsed' | 'flops') => [
        ...series.read('a', 'loss', maxPoints, { axis }).x,
      ];
      const [tokens, elapsed, flops] = [over('tokens'), over('elapsed'), over('flops')];
      for (const [index, at] of steps.entries()) {
        // A block's point lies at a step in its middle.
        expect(Math.abs((tokens[index] ?? 0) / 100 - at)).toBeLessThanOrEqual(0.5);
        expect(Math.abs((elapsed[index] ?? 0) / 60 - at)).toBeLessThanOrEqual(0.5);
        expect(Math.abs((flops[index] ?? 0) / 1e9 - at)).toBeLessThanOrEqual(0.5);
      }
    }
  });

  it('keeps NaN and the infinities as gaps that are counted, beside exact extremes', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    const rows = Array.from({ length: 64 }, (_, index) => step(index + 1));
    rows[20] = step(21, Number.NaN);
    rows[21] = step(22, Number.POSITIVE_INFINITY);
    for (let index = 48; index < 64; index += 1) rows[index] = step(index + 1, Number.NaN);
    series.append('a', withTotals(rows));
    const raw = series.read('a', 'loss', 100);
    expect(raw.mean[20]).toBeNaN();
    expect(raw.mean[21]).toBe(Infinity);
    expect([...raw.numNonFinite].reduce((sum, each) => sum + each, 0)).toBe(18);
    const rolled = series.read('a', 'loss', 10, { maxRows: 0 });
    expect([...rolled.numNonFinite]).toEqual([0, 2, 0, 16]);
    expect([...rolled.maximum].slice(0, 3)).toEqual([16, 32, 48]);
    expect(rolled.mean[3]).toBeNaN();
    // Made again after a resume, the roll-ups say the same.
    series.truncate('a', 60);
    expect([...series.read('a', 'loss', 10, { maxRows: 0 }).numNonFinite]).toEqual([0, 2, 0, 12]);
    expect(series.totals('a').lastLoss).not.toBeNaN();
    expect(series.totals('a').firstLoss).toBeCloseTo(1.5);
  });

  it('opens a run with one point, and one with none', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    expect(series.read('a', 'loss', 100).steps).toHaveLength(0);
    expect(series.totals('a')).toMatchObject({ steps: 0, firstLoss: null });
    series.append('a', withTotals([step(1, 3)]));
    expect([...series.read('a', 'loss', 100).mean]).toEqual([3]);
    expect(series.totals('a')).toMatchObject({ steps: 1, firstLoss: 3, lastLoss: 3 });
  });

  it('reads through indexes', () => {
    assertIndexed(db, listSql);
    assertIndexed(
      db,
      'SELECT step, loss FROM runSteps WHERE runId = ? AND step BETWEEN ? AND ? ORDER BY step',
      ['a', 1, 2],
    );
    assertIndexed(db, 'SELECT * FROM runEvents WHERE runId = ? ORDER BY id', ['a']);
  });

  it('opens ten million steps by a few thousand roll-ups, and finer ones where it is zoomed in', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('long'));
    const numSteps = 10_000_000;
    const spikeStep = 7_654_321;
    // The roll-ups that ten million appended steps would have left, and the newest step.
    for (const blockSteps of [4096, 65_536])
      db.prepare(
        `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE (i + 1) * @size < @steps)
         INSERT INTO runRollups SELECT 'long', 'loss', @size, i, @size, 0, 1.0,
         CASE WHEN i = (@spike - 1) / @size THEN 99.0 ELSE 2.0 END, 1.5 * @size FROM n`,
      ).run({ size: BigInt(blockSteps), steps: BigInt(numSteps), spike: BigInt(spikeStep) });
    series.append('long', withTotals([step(numSteps, 1)]));
    const whole = series.read('long', 'loss', 2000);
    expect(whole.blockSteps).toBe(4096);
    expect(whole.steps.length).toBeLessThan(2500);
    expect(whole.maximum.filter((value) => value === 99)).toHaveLength(1);
    expect(Math.abs((whole.steps[whole.maximum.indexOf(99)] ?? 0) - spikeStep)).toBeLessThan(4096);
    expect(series.read('long', 'loss', 100).blockSteps).toBe(65_536);
    expect(series.read('long', 'loss', 2000, { fromStep: 5_000_000, toStep: 5_400_000 }).blockSteps).toBe(
      256,
    );
    expect(series.read('long', 'loss', 2000, { fromStep: 5_000_000, toStep: 5_002_000 }).blockSteps).toBe(1);
    expect(series.extremes('long')).toMatchObject({ realTokens: 100 });
  });

  it('of many long curves each is coarse, and of few as fine as a screen shows, spikes and all', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('long'));
    const numSteps = 100_000;
    for (const blockSteps of [16, 256])
      db.prepare(
        `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE (i + 1) * @size < @steps)
         INSERT INTO runRollups SELECT 'long', 'loss', @size, i, @size, 0, 1.0,
         CASE WHEN i = 54320 / @size THEN 99.0 ELSE 2.0 END, 1.5 * @size FROM n`,
      ).run({ size: BigInt(blockSteps), steps: BigInt(numSteps) });
    series.append('long', withTotals([step(numSteps, 1)]));
    const [numPixels, asked] = [900, { maxRows: fineRows / 50 }];
    const coarse = series.read('long', 'loss', numPixels, asked);
    expect(coarse.steps.length).toBeLessThan(numPixels / 2);
    const fine = series.read('long', 'loss', numPixels, { maxRows: fineRows / 5 });
    expect(fine.steps.length).toBeGreaterThan(0.75 * numPixels);
    expect(fine.steps.length).toBeLessThanOrEqual(1.25 * numPixels);
    for (const { maximum } of [coarse, fine]) expect(maximum.filter((value) => value === 99)).toHaveLength(1);
  });

  it('sums what a run computed, and finds the best mean of twenty steps in a row', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    expect(series.extremes('a')).toEqual({ realTokens: 0, positions: 0, bestLoss: null });
    const low = (at: number) => (at > 30 && at <= 50 ? 1 : 2);
    const rows = withTotals(
      Array.from({ length: 90 }, (_, i) => step(i + 1, i === 40 ? Number.NaN : low(i + 1))),
    );
    series.append('a', rows.slice(0, 3));
    expect(series.extremes('a')).toEqual({ realTokens: 300, positions: 384, bestLoss: 2 });
    series.append('a', rows.slice(3));
    expect(series.extremes('a')).toEqual({ realTokens: 9000, positions: 90 * 128, bestLoss: 1 });
  });

  it('counts positions of steps that an older version wrote', () => {
    const series = seriesQueries(db);
    runQueries(db).insert(run('a'));
    series.append('a', withTotals(Array.from({ length: 10 }, (_, i) => step(i + 1))));
    // As the migration leaves them: the newest step alone has the sum.
    db.exec('UPDATE runSteps SET positionsTotal = NULL WHERE step < 10');
    expect(series.extremes('a').positions).toBe(1280);
    series.truncate('a', 4);
    series.append('a', withTotals([step(5)], series.at('a', 4)));
    expect(series.extremes('a').positions).toBe(5 * 128);
  });
});
