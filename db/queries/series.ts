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
  flopsPerSecond: {
    sql: 'flops * 1000.0 / max(milliseconds, 1e-6)',
    of: (row: StepRow) => (row.flops * 1000) / Math.max(row.milliseconds, 1e-6),
  },
} as const;
export type Metric = keyof typeof metrics;
const metricNames = Object.keys(metrics) as Metric[];

/** What a curve may be drawn over, as the column of `runSteps` that holds it. */
const axes = {
  step: 'step',
  tokens: 'realTokensTotal',
  elapsed: 'elapsedMs',
  flops: 'flopsTotal',
  wall: 'atMs',
} as const;
export type Axis = keyof typeof axes;

export interface SeriesColumns {
  blockSteps: number;
  steps: Float64Array;
  /** The point's place on the axis that was asked for. */
  x: Float64Array;
  /** NaN where a point holds no number at all. */
  minimum: Float64Array;
  maximum: Float64Array;
  mean: Float64Array;
  /** How many of a point's values are NaN or infinite. */
  numNonFinite: Float64Array;
}

export interface Totals {
  steps: number;
  realTokens: number;
  milliseconds: number;
  elapsedMs: number;
  firstLoss: number | null;
  lastLoss: number | null;
}

export interface ReadOptions {
  axis?: Axis;
  fromStep?: number;
  toStep?: number;
  /** What may be read of a whole run for a finer curve than its level's; default: as much as one curve is worth. */
  maxRows?: number;
}

/** Rows that all curves of one answer may cost: some 50 ms. */
export const fineRows = 40_000;

const columns = [
  ...['step', 'atMs', 'loss', 'gradNorm', 'learningRate', 'supervisedTokens', 'realTokens', 'positions'],
  ...['milliseconds', 'flops', 'elapsedMs', 'realTokensTotal', 'supervisedTokensTotal', 'millisecondsTotal'],
  ...['flopsTotal', 'lossTotal', 'positionsTotal'],
];
const insertSql = `INSERT INTO runSteps (runId, ${columns.join(', ')}) VALUES (@runId, ${columns.map((name) => `@${name}`).join(', ')})`;

const upsertSql = `INSERT INTO runRollups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
  count = count + excluded.count, numNonFinite = numNonFinite + excluded.numNonFinite,
  minimum = coalesce(min(minimum, excluded.minimum), minimum, excluded.minimum),
  maximum = coalesce(max(maximum, excluded.maximum), maximum, excluded.maximum), total = total + excluded.total`;

/** Ten million steps are 2,442 blocks of 4,096. */
const overfull = 1.25;

/** Beyond this the best loss is looked for in the means of blocks. */
const longRun = 200_000;
/** The best loss is a mean of so many steps in a row. */
const bestSteps = 20;

/** Beyond this SQLite holds an infinity. */
const finite = (sql: string) => `abs(${sql}) < 1e308`;

/** What the engine says of a step; the totals follow from the step before. */
export type MeasuredStep = Omit<
  StepRow,
  | 'realTokensTotal'
  | 'positionsTotal'
  | 'supervisedTokensTotal'
  | 'millisecondsTotal'
  | 'flopsTotal'
  | 'lossTotal'
>;

/** A step with the totals of its run up to it. `previous` is the step before, absent for the first. */
export function addTotals<T extends MeasuredStep>(previous: StepRow | undefined, step: T): T & StepRow {
  const { loss } = step;
  const counted = Number.isFinite(loss);
  return {
    ...step,
    realTokensTotal: (previous?.realTokensTotal ?? 0) + step.realTokens,
    positionsTotal: (previous?.positionsTotal ?? 0) + step.positions,
    // A loss that is no number weighs nothing in the means.
    supervisedTokensTotal: (previous?.supervisedTokensTotal ?? 0) + (counted ? step.supervisedTokens : 0),
    millisecondsTotal: (previous?.millisecondsTotal ?? 0) + step.milliseconds,
    flopsTotal: (previous?.flopsTotal ?? 0) + step.flops,
    lossTotal: (previous?.lossTotal ?? 0) + (counted ? loss * step.supervisedTokens : 0),
  };
}

/** Values by step, with min/max/mean roll-ups kept as they arrive. Step s lies in block ⌊(s − 1) ÷ blockSteps⌋. */
export function seriesQueries(db: Db) {
  const insert = db.prepare(insertSql);
  const upsert = db.prepare(upsertSql);
  const upTo = db.prepare('SELECT * FROM runSteps WHERE runId = ? AND step <= ? ORDER BY step DESC LIMIT 1');
  const first = db.prepare('SELECT * FROM runSteps WHERE runId = ? ORDER BY step LIMIT 1');
  const sumPositions = db
    .prepare('SELECT sum(positions) FROM runSteps WHERE runId = ? AND step <= ?')
    .pluck();
  const stored = (runId: string, step: number) => upTo.get(runId, step) as StoredStep | undefined;
  /** The newest step up to and with `step`. */
  const at = (runId: string, step: number): StepRow | undefined => {
    const row = stored(runId, step);
    // Older versions did not keep it.
    return row && revive(row, row.positionsTotal ?? (sumPositions.get(runId, row.step) as number));
  };

  const append = db.transaction((runId: string, rows: StepRow[]) => {
    for (const row of rows) insert.run({ ...row, runId });
    for (const blockSteps of rollupBlocks) {
      for (const [block, part] of groupBlocks(rows, blockSteps)) {
        for (const metric of metricNames) {
          const { count, minimum, maximum, total } = summarise(part, metrics[metric].of);
          const numNonFinite = part.length - count;
          upsert.run(runId, metric, blockSteps, block, count, numNonFinite, minimum, maximum, total);
        }
      }
    }
  });

  /** Forgets all after `step` (a run that goes on from a checkpoint) and makes the touched roll-ups again. */
  const truncate = db.transaction((runId: string, step: number) => {
    const { changes } = db.prepare('DELETE FROM runSteps WHERE runId = ? AND step > ?').run(runId, step);
    db.prepare('DELETE FROM runEvaluations WHERE runId = ? AND step > ?').run(runId, step);
    db.prepare('DELETE FROM runSamples WHERE runId = ? AND step > ?').run(runId, step);
    if (changes === 0) return;
    for (const blockSteps of rollupBlocks) {
      const block = Math.floor(step / blockSteps);
      for (const metric of metricNames) {
        db.prepare(
          'DELETE FROM runRollups WHERE runId = ? AND metric = ? AND blockSteps = ? AND block >= ?',
        ).run(runId, metric, blockSteps, block);
        const { sql } = metrics[metric];
        const only = (part: string) => `${part} FILTER (WHERE ${finite(sql)})`;
        db.prepare(
          `INSERT INTO runRollups SELECT runId, ?, ${blockSteps}, (step - 1) / ${blockSteps}, ${only('count(*)')},
           count(*) - ${only('count(*)')}, ${only(`min(${sql})`)}, ${only(`max(${sql})`)},
           coalesce(${only(`sum(${sql})`)}, 0.0)
           FROM runSteps WHERE runId = ? AND step > ? GROUP BY (step - 1) / ${blockSteps}`,
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
    at,
    /** At most about `maxPoints` points from the finest level that allows it; minima and maxima are exact. */
    read: (runId: string, metric: Metric, maxPoints: number, options: ReadOptions = {}): SeriesColumns => {
      const { axis = 'step', fromStep = 1, toStep = Number.MAX_SAFE_INTEGER, maxRows = fineRows } = options;
      const newest = stored(runId, Number.MAX_SAFE_INTEGER)?.step ?? 0;
      const span = Math.min(toStep, newest) - fromStep + 1;
      // A level is 16 times as fine as the next: a few points too many are better than 15 of 16 too few.
      const blockSteps =
        [1, ...rollupBlocks].find((size) => span / size <= maxPoints * overfull) ?? rollupBlocks[3];
      const readLevel = (size: number) =>
        size === 1
          ? readRaw(db, runId, metrics[metric].sql, axis, fromStep, toStep)
          : readRollup(db, runId, metric, size, fromStep, toStep);
      // A level's few hundred points are less than a chart has room for: the next finer one, some of it merged.
      const finer = [1, ...rollupBlocks].findLast((size) => size < blockSteps) ?? 1;
      const isZoomed = fromStep > 1 || toStep < newest;
      const isWorth = isZoomed || span / finer <= maxRows;
      if (!isWorth || blockSteps === 1 || span / blockSteps > maxPoints / 2)
        return place(db, runId, axis, readLevel(blockSteps));
      return place(db, runId, axis, mergePoints(readLevel(finer), Math.ceil(span / finer / maxPoints)));
    },
    /**
     * All tokens and positions, and the lowest mean loss of 20 steps in a row: of all where there are fewer, of the
     * blocks of 256 where the run is long.
     */
    extremes: (runId: string): { realTokens: number; positions: number; bestLoss: number | null } => {
      const newest = at(runId, Number.MAX_SAFE_INTEGER);
      if (newest === undefined) return { realTokens: 0, positions: 0, bestLoss: null };
      const { realTokensTotal: realTokens, positionsTotal: positions } = newest;
      const bestLoss = newest.step > longRun ? bestBlock(db, runId) : bestMean(db, runId);
      return { realTokens, positions, bestLoss };
    },
    /**
     * Sums over all steps, and token-weighted losses of the first and last max(1, 5 %) of them: differences of stored
     * totals, however long the run. A step that came out as no number was not taken, and counts nowhere.
     */
    totals: (runId: string): Totals => {
      const newest = stored(runId, Number.MAX_SAFE_INTEGER);
      const oldest = first.get(runId) as StoredStep | undefined;
      if (newest === undefined || oldest === undefined)
        return { steps: 0, realTokens: 0, milliseconds: 0, elapsedMs: 0, firstLoss: null, lastLoss: null };
      const isTaken = [newest.loss, newest.gradNorm].every((value) => Number.isFinite(value));
      const steps = newest.step - oldest.step + (isTaken ? 1 : 0);
      const share = Math.max(1, Math.floor(steps * 0.05));
      const end = isTaken ? newest : stored(runId, newest.step - 1);
      return {
        steps,
        realTokens: newest.realTokensTotal,
        milliseconds: newest.millisecondsTotal,
        elapsedMs: newest.elapsedMs,
        firstLoss: meanLoss(undefined, stored(runId, oldest.step + share - 1)),
        lastLoss: meanLoss(end && stored(runId, end.step - share), end),
      };
    },
  };
}

export type SeriesQueries = ReturnType<typeof seriesQueries>;

/** A NaN is kept as NULL; so is a total that older versions did not keep. */
type StoredStep = Omit<StepRow, 'loss' | 'gradNorm' | 'positionsTotal'> & {
  loss: number | null;
  gradNorm: number | null;
  positionsTotal: number | null;
};

function revive(row: StoredStep, positionsTotal: number): StepRow {
  return { ...row, positionsTotal, loss: row.loss ?? Number.NaN, gradNorm: row.gradNorm ?? Number.NaN };
}

function bestMean(db: Db, runId: string): number | null {
  const losses = db.prepare('SELECT loss FROM runSteps WHERE runId = ? ORDER BY step').pluck().all(runId) as (
    number | null
  )[];
  const length = Math.min(bestSteps, losses.length);
  let best = Infinity;
  for (let end = length; end <= losses.length; end += 1) {
    let [sum, count] = [0, 0];
    for (let i = end - length; i < end; i += 1) {
      const loss = losses[i];
      if (!Number.isFinite(loss)) continue;
      sum += loss ?? 0;
      count += 1;
    }
    if (count > 0) best = Math.min(best, sum / count);
  }
  return best === Infinity ? null : best;
}

function bestBlock(db: Db, runId: string): number | null {
  const best = db.prepare(
    `SELECT min(total / count) FROM runRollups
     WHERE runId = ? AND metric = 'loss' AND blockSteps = 256 AND count > 0`,
  );
  return best.pluck().get(runId) as number | null;
}

type LossTotals = Pick<StepRow, 'lossTotal' | 'supervisedTokensTotal'>;

/** Nats per supervised token of the steps after `from`, up to `to`. */
function meanLoss(from: LossTotals | undefined, to: LossTotals | undefined): number | null {
  const tokens = (to?.supervisedTokensTotal ?? 0) - (from?.supervisedTokensTotal ?? 0);
  return tokens <= 0 ? null : ((to?.lossTotal ?? 0) - (from?.lossTotal ?? 0)) / tokens;
}

function summarise(rows: StepRow[], of: (row: StepRow) => number) {
  let count = 0;
  let total = 0;
  let minimum: number | null = null;
  let maximum: number | null = null;
  for (const row of rows) {
    const value = of(row);
    if (!Number.isFinite(value)) continue;
    count += 1;
    total += value;
    if (minimum === null || value < minimum) minimum = value;
    if (maximum === null || value > maximum) maximum = value;
  }
  return { count, total, minimum, maximum };
}

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

type Cell = number | null;
function column(rows: Cell[][], at: number): Float64Array {
  const values = new Float64Array(rows.length);
  for (let i = 0; i < values.length; i += 1) values[i] = rows[i]?.[at] ?? Number.NaN;
  return values;
}

function readRaw(
  db: Db,
  runId: string,
  sql: string,
  axis: Axis,
  fromStep: number,
  toStep: number,
): SeriesColumns {
  const rows = db
    .prepare(
      `SELECT step, ${axes[axis]}, ${sql} FROM runSteps WHERE runId = ? AND step BETWEEN ? AND ? ORDER BY step`,
    )
    .raw()
    .all(runId, fromStep, toStep) as Cell[][];
  const values = column(rows, 2);
  const steps = column(rows, 0);
  return {
    blockSteps: 1,
    steps,
    x: axis === 'step' ? steps : column(rows, 1),
    minimum: values,
    maximum: values,
    mean: values,
    numNonFinite: values.map((value) => (Number.isFinite(value) ? 0 : 1)),
  };
}

const sameAxis = (steps: Float64Array) => ({ steps, x: steps });

/** Every `size` points as one, with their extremes; a point's weight in the mean are its values that are numbers. */
function mergePoints(points: SeriesColumns, size: number): SeriesColumns {
  const { steps, x, minimum, maximum, mean, numNonFinite } = points;
  const length = Math.ceil(steps.length / size);
  const make = (of: (from: number, to: number) => number) =>
    Float64Array.from({ length }, (_, i) => of(i * size, Math.min((i + 1) * size, steps.length)));
  const middles = (values: Float64Array) =>
    make((from, to) => values.subarray(from, to).reduce((sum, value) => sum + value, 0) / (to - from));
  const extreme = (values: Float64Array, pick: (a: number, b: number) => number) =>
    make((from, to) =>
      values
        .subarray(from, to)
        .reduce((best, value) =>
          Number.isNaN(best) ? value : Number.isNaN(value) ? best : pick(best, value),
        ),
    );
  return {
    blockSteps: points.blockSteps * size,
    ...(x === steps ? sameAxis(middles(steps)) : { steps: middles(steps), x: middles(x) }),
    minimum: extreme(minimum, Math.min),
    maximum: extreme(maximum, Math.max),
    mean: make((from, to) => {
      let [sum, weights] = [0, 0];
      for (let i = from; i < to; i += 1) {
        const weight = points.blockSteps - (numNonFinite[i] ?? 0);
        if (weight <= 0) continue;
        sum += weight * (mean[i] ?? 0);
        weights += weight;
      }
      return weights === 0 ? Number.NaN : sum / weights;
    }),
    numNonFinite: make((from, to) => numNonFinite.subarray(from, to).reduce((sum, value) => sum + value, 0)),
  };
}

/** Between two points that were looked up others lie in a line, where the one in the middle does so by this share of all. */
const straight = 1 / 4000;
const firstStretches = 16;

/** Looks up where points lie on an axis: so many of them as tell where all are, to less than a screen's pixel. */
function place(db: Db, runId: string, axis: Axis, points: SeriesColumns): SeriesColumns {
  const { steps } = points;
  if (axis === 'step' || points.x !== steps || steps.length === 0) return points;
  const statement = db
    .prepare(`SELECT ${axes[axis]} FROM runSteps WHERE runId = ? AND step >= ? ORDER BY step LIMIT 1`)
    .pluck();
  const lookUp = (at: number) =>
    (statement.get(runId, Math.floor(steps[at] ?? 0)) as Cell | undefined) ?? Number.NaN;
  const last = steps.length - 1;
  const x = new Float64Array(steps.length);
  const [begin, end] = [lookUp(0), lookUp(last)];
  [x[0], x[last]] = [begin, end];
  const tolerance = straight * (end - begin);
  const line = (from: number, to: number) => {
    const [begin = 0, end = 0] = [x[from], x[to]];
    for (let i = from + 1; i < to; i += 1) x[i] = begin + ((end - begin) * (i - from)) / (to - from);
  };
  const fill = (from: number, to: number) => {
    if (to - from < 2) return;
    const middle = (from + to) >> 1;
    const found = lookUp(middle);
    line(from, to);
    const isStraight = Math.abs((x[middle] ?? 0) - found) <= tolerance;
    x[middle] = found;
    for (const [a, b] of [
      [from, middle],
      [middle, to],
    ] as const) {
      if (isStraight) line(a, b);
      else fill(a, b);
    }
  };
  const stretch = Math.max(1, Math.ceil(last / firstStretches));
  for (let from = 0; from < last; from += stretch) {
    const to = Math.min(last, from + stretch);
    if (to < last) x[to] = lookUp(to);
    fill(from, to);
  }
  return { ...points, x };
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
      `SELECT block * ${blockSteps} + (count + numNonFinite + 1) / 2.0, minimum, maximum,
       CASE WHEN count > 0 THEN total / count END, numNonFinite FROM runRollups
       WHERE runId = ? AND metric = ? AND blockSteps = ? AND block BETWEEN ? AND ? ORDER BY block`,
    )
    .raw()
    .all(
      runId,
      metric,
      blockSteps,
      Math.floor((fromStep - 1) / blockSteps),
      Math.floor((toStep - 1) / blockSteps),
    ) as Cell[][];
  const steps = column(rows, 0);
  return {
    blockSteps,
    steps,
    x: steps,
    minimum: column(rows, 1),
    maximum: column(rows, 2),
    mean: column(rows, 3),
    numNonFinite: column(rows, 4),
  };
}
