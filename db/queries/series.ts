import type { Db } from '../connection.ts';
import type { StepRow } from './runs.ts';

/** Roll-ups merge this many steps; each is 16 times the one before. */
const rollupBlocks = [16, 256, 4096, 65_536] as const;

/** A metric as SQL over `runSteps` and as a function of a row: the two must agree. */
const metrics = {
  loss: { sql: 'loss', of: (row: StepRow) => row.loss },
  gradNorm: { sql: 'gradNorm', of: (row: StepRow) => row.gradNorm },
  learningRate: { sql: 'learningRate', of: (row: StepRow) => row.learningRate },
  milliseconds: { sql: 'milliseconds', of: (row: StepRow) => row.milliseconds },
  tokensPerSecond: {
    sql: 'realTokens * 1000.0 / max(milliseconds, 1e-6)',
    of: (row: StepRow) => (row.realTokens * 1000) / Math.max(row.milliseconds, 1e-6),
  },
} as const;
export type Metric = keyof typeof metrics;
const metricNames = Object.keys(metrics) as Metric[];

export interface SeriesColumns {
  blockSteps: number;
  steps: Float64Array;
  minimum: Float64Array;
  maximum: Float64Array;
  mean: Float64Array;
}

export interface Totals {
  steps: number;
  realTokens: number;
  milliseconds: number;
  firstLoss: number | null;
  lastLoss: number | null;
}

const insertSql = `INSERT INTO runSteps (runId, step, atMs, loss, gradNorm, learningRate, supervisedTokens, realTokens,
  positions, milliseconds) VALUES (@runId, @step, @atMs, @loss, @gradNorm, @learningRate, @supervisedTokens,
  @realTokens, @positions, @milliseconds)`;

const upsertSql = `INSERT INTO runRollups VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
  count = count + excluded.count, minimum = min(minimum, excluded.minimum),
  maximum = max(maximum, excluded.maximum), total = total + excluded.total`;

/** Values by step, with min/max/mean roll-ups kept as they arrive. Step s lies in block ⌊(s − 1) ÷ blockSteps⌋. */
export function seriesQueries(db: Db) {
  const insert = db.prepare(insertSql);
  const upsert = db.prepare(upsertSql);

  const append = db.transaction((runId: string, rows: StepRow[]) => {
    for (const row of rows) insert.run({ ...row, runId });
    for (const blockSteps of rollupBlocks) {
      for (const [block, part] of groupBlocks(rows, blockSteps)) {
        for (const metric of metricNames) {
          const values = part.map(metrics[metric].of);
          const total = values.reduce((sum, value) => sum + value, 0);
          upsert.run(
            runId,
            metric,
            blockSteps,
            block,
            part.length,
            Math.min(...values),
            Math.max(...values),
            total,
          );
        }
      }
    }
  });

  /** Forgets all after `step` (a run that goes on from a checkpoint) and makes the touched roll-ups again. */
  const truncate = db.transaction((runId: string, step: number) => {
    db.prepare('DELETE FROM runSteps WHERE runId = ? AND step > ?').run(runId, step);
    db.prepare('DELETE FROM runEvaluations WHERE runId = ? AND step > ?').run(runId, step);
    for (const blockSteps of rollupBlocks) {
      const block = Math.floor(step / blockSteps);
      db.prepare('DELETE FROM runRollups WHERE runId = ? AND blockSteps = ? AND block >= ?').run(
        runId,
        blockSteps,
        block,
      );
      for (const metric of metricNames) {
        const { sql } = metrics[metric];
        db.prepare(
          `INSERT INTO runRollups SELECT runId, ?, ${blockSteps}, (step - 1) / ${blockSteps}, count(*), min(${sql}),
           max(${sql}), sum(${sql}) FROM runSteps WHERE runId = ? AND step > ? GROUP BY (step - 1) / ${blockSteps}`,
        ).run(metric, runId, block * blockSteps);
      }
    }
  });

  return {
    append: (runId: string, rows: StepRow[]) => {
      if (rows.length > 0) append.immediate(runId, rows);
    },
    truncate: (runId: string, step: number) => {
      truncate.immediate(runId, step);
    },
    steps: (runId: string) =>
      db.prepare('SELECT * FROM runSteps WHERE runId = ? ORDER BY step').all(runId) as StepRow[],
    /** At most about `maxPoints` points from the finest level that allows it; minima and maxima are exact. */
    read: (
      runId: string,
      metric: Metric,
      maxPoints: number,
      fromStep = 1,
      toStep = Number.MAX_SAFE_INTEGER,
    ): SeriesColumns => {
      const { last } = db.prepare('SELECT max(step) AS last FROM runSteps WHERE runId = ?').get(runId) as {
        last: number | null;
      };
      const span = Math.min(toStep, last ?? 0) - fromStep + 1;
      const blockSteps = [1, ...rollupBlocks].find((size) => span / size <= maxPoints) ?? rollupBlocks[3];
      return blockSteps === 1
        ? readRaw(db, runId, metrics[metric].sql, fromStep, toStep)
        : readRollup(db, runId, metric, blockSteps, fromStep, toStep);
    },
    /** Sums over all steps, and token-weighted losses of the first and last max(1, 5 %) of them. */
    totals: (runId: string): Totals => {
      const sums = db
        .prepare(
          `SELECT count(*) AS steps, coalesce(sum(realTokens), 0) AS realTokens,
           coalesce(sum(milliseconds), 0.0) AS milliseconds FROM runSteps WHERE runId = ?`,
        )
        .get(runId) as Omit<Totals, 'firstLoss' | 'lastLoss'>;
      const share = Math.max(1, Math.floor(sums.steps * 0.05));
      const loss = (order: 'ASC' | 'DESC') =>
        (
          db
            .prepare(
              `SELECT sum(loss * supervisedTokens) / sum(supervisedTokens) AS loss FROM
               (SELECT loss, supervisedTokens FROM runSteps WHERE runId = ? ORDER BY step ${order} LIMIT ?)`,
            )
            .get(runId, share) as { loss: number | null }
        ).loss;
      return { ...sums, firstLoss: loss('ASC'), lastLoss: loss('DESC') };
    },
  };
}

export type SeriesQueries = ReturnType<typeof seriesQueries>;

function groupBlocks(rows: StepRow[], blockSteps: number): Map<number, StepRow[]> {
  const blocks = new Map<number, StepRow[]>();
  for (const row of rows) {
    const block = Math.floor((row.step - 1) / blockSteps);
    const part = blocks.get(block);
    if (part === undefined) blocks.set(block, [row]);
    else part.push(row);
  }
  return blocks;
}

function readRaw(db: Db, runId: string, sql: string, fromStep: number, toStep: number): SeriesColumns {
  const rows = db
    .prepare(`SELECT step, ${sql} FROM runSteps WHERE runId = ? AND step BETWEEN ? AND ? ORDER BY step`)
    .raw()
    .all(runId, fromStep, toStep) as [number, number][];
  const values = Float64Array.from(rows, (row) => row[1]);
  return {
    blockSteps: 1,
    steps: Float64Array.from(rows, (row) => row[0]),
    minimum: values,
    maximum: values,
    mean: values,
  };
}

function readRollup(
  db: Db,
  runId: string,
  metric: Metric,
  blockSteps: number,
  fromStep: number,
  toStep: number,
): SeriesColumns {
  const rows = db
    .prepare(
      `SELECT block, count, minimum, maximum, total FROM runRollups WHERE runId = ? AND metric = ? AND blockSteps = ?
       AND block BETWEEN ? AND ? ORDER BY block`,
    )
    .raw()
    .all(
      runId,
      metric,
      blockSteps,
      Math.floor((fromStep - 1) / blockSteps),
      Math.floor((toStep - 1) / blockSteps),
    ) as [number, number, number, number, number][];
  return {
    blockSteps,
    steps: Float64Array.from(rows, ([block, count]) => block * blockSteps + (count + 1) / 2),
    minimum: Float64Array.from(rows, (row) => row[2]),
    maximum: Float64Array.from(rows, (row) => row[3]),
    mean: Float64Array.from(rows, ([, count, , , total]) => total / count),
  };
}
