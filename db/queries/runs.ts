import type { Db } from '../connection.ts';

export interface RunRow {
  id: string;
  name: string;
  kind: 'train' | 'benchmark';
  status: string;
  reason: string | null;
  createdAtMs: number;
  startedAtMs: number | null;
  endedAtMs: number | null;
  activeMs: number;
  archivedAtMs: number | null;
  notes: string;
  recipe: string;
  hashes: string;
  plan: string;
  device: string | null;
  kernels: string | null;
  preflight: string | null;
  folder: string;
  /** pid and start time of the engine that last worked on it. */
  engine: string | null;
  plannedSteps: number;
  steps: number;
  checkpointStep: number | null;
  checkpointPath: string | null;
  firstLoss: number | null;
  lastLoss: number | null;
  evalLossBefore: number | null;
  evalLossAfter: number | null;
  tokensPerSecond: number | null;
}

export interface RunListRow extends RunRow {
  /** JSON array. */
  tags: string;
}

export type NewRun = Pick<
  RunRow,
  | 'id'
  | 'name'
  | 'kind'
  | 'createdAtMs'
  | 'recipe'
  | 'hashes'
  | 'plan'
  | 'preflight'
  | 'folder'
  | 'plannedSteps'
>;

export interface StepRow {
  step: number;
  atMs: number;
  loss: number;
  gradNorm: number;
  learningRate: number;
  supervisedTokens: number;
  realTokens: number;
  positions: number;
  milliseconds: number;
}

export interface EventRow {
  atMs: number;
  step: number | null;
  kind: string;
  data: string;
}

export interface EvaluationRow {
  step: number;
  phase: string;
  loss: number;
  tokens: number;
}

const withTags = `SELECT runs.*,
  (SELECT json_group_array(tag) FROM (SELECT tag FROM runTags WHERE runId = runs.id ORDER BY tag)) AS tags FROM runs`;

export const listSql = `${withTags} WHERE kind = 'train' ORDER BY createdAtMs DESC`;

/** Everything that is read and written of runs, apart from their series (`series.ts`). */
export function runQueries(db: Db) {
  const insert = db.prepare(
    `INSERT INTO runs (id, name, kind, status, createdAtMs, recipe, hashes, plan, preflight, folder, plannedSteps)
     VALUES (@id, @name, @kind, 'queued', @createdAtMs, @recipe, @hashes, @plan, @preflight, @folder, @plannedSteps)`,
  );
  const get = db.prepare(`${withTags} WHERE id = ?`);
  const list = db.prepare(listSql);
  const insertEvent = db.prepare(
    'INSERT INTO runEvents (runId, atMs, step, kind, data) VALUES (?, ?, ?, ?, ?)',
  );
  const insertEvaluation = db.prepare('INSERT OR REPLACE INTO runEvaluations VALUES (?, ?, ?, ?, ?)');
  const insertProfile = db.prepare('INSERT OR REPLACE INTO runProfiles VALUES (?, ?, ?, ?)');

  return {
    insert: (run: NewRun) => void insert.run(run),
    get: (id: string) => get.get(id) as RunListRow | undefined,
    list: () => list.all() as RunListRow[],
    find: (name: string) =>
      db
        .prepare(
          `${withTags} WHERE substr(id, 1, length(@name)) = @name OR name = @name ORDER BY createdAtMs DESC`,
        )
        .all({ name }) as RunListRow[],
    latest: () => db.prepare(`${listSql} LIMIT 1`).get() as RunListRow | undefined,
    withStatus: (...statuses: string[]) =>
      db
        .prepare(`${withTags} WHERE status IN (SELECT value FROM json_each(?)) ORDER BY createdAtMs`)
        .all(JSON.stringify(statuses)) as RunListRow[],
    update: (id: string, fields: Partial<Omit<RunRow, 'id'>>) => {
      const names = Object.keys(fields);
      if (names.length === 0) return;
      const set = names.map((name) => `${name} = @${name}`).join(', ');
      db.prepare(`UPDATE runs SET ${set} WHERE id = @id`).run({ ...fields, id });
    },
    addEvent: (runId: string, event: EventRow) => {
      insertEvent.run(runId, event.atMs, event.step, event.kind, event.data);
    },
    events: (runId: string) =>
      db
        .prepare('SELECT atMs, step, kind, data FROM runEvents WHERE runId = ? ORDER BY id')
        .all(runId) as EventRow[],
    addEvaluation: (runId: string, { step, phase, loss, tokens }: EvaluationRow) => {
      insertEvaluation.run(runId, step, phase, loss, tokens);
    },
    evaluations: (runId: string) =>
      db
        .prepare('SELECT step, phase, loss, tokens FROM runEvaluations WHERE runId = ? ORDER BY step')
        .all(runId) as EvaluationRow[],
    addProfile: (runId: string, step: number, atMs: number, data: string) => {
      insertProfile.run(runId, step, atMs, data);
    },
    latestProfile: (runId: string) =>
      db.prepare('SELECT data FROM runProfiles WHERE runId = ? ORDER BY step DESC LIMIT 1').get(runId) as
        { data: string } | undefined,
    /** Measured on the newest runs of a model on a device; undefined where there is none. */
    secondsPerPosition: (model: string, device: string): number | undefined => {
      const { ms, positions } = db
        .prepare(
          `SELECT sum(milliseconds) AS ms, sum(positions) AS positions FROM runSteps WHERE runId IN
           (SELECT id FROM runs WHERE device = ? AND recipe ->> 'model' = ? AND steps > 1
            ORDER BY createdAtMs DESC LIMIT 3)`,
        )
        .get(device, model) as { ms: number | null; positions: number | null };
      return ms === null || positions === null || positions === 0 ? undefined : ms / 1000 / positions;
    },
    addTags: (runId: string, tags: string[]) => {
      const add = db.prepare('INSERT OR IGNORE INTO runTags VALUES (?, ?)');
      db.transaction(() => {
        for (const tag of tags) add.run(runId, tag);
      })();
    },
  };
}

export type RunQueries = ReturnType<typeof runQueries>;
