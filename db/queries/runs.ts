import type Database from 'better-sqlite3';
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
  /** Time spent training, evaluating and saving, by a clock that no one sets; pauses left out. */
  elapsedMs: number;
  bestLoss: number | null;
  bestStep: number | null;
  /** Version of the program that planned it. */
  codeVersion: string | null;
  deletedAtMs: number | null;
}

/** What a trigger takes from the recipe and the plan. */
interface DerivedRow {
  strategy: string | null;
  peakLr: number | null;
  dataset: string | null;
  model: string | null;
  fill: number | null;
}

export interface RunListRow extends RunRow, DerivedRow {
  /** JSON array. */
  tags: string;
}

/** What a summary of a run shows: all of it stands in the index `runsSummary`. */
export type SummaryRow = Omit<
  RunListRow,
  | 'kind'
  | 'activeMs'
  | 'notes'
  | 'recipe'
  | 'hashes'
  | 'plan'
  | 'kernels'
  | 'preflight'
  | 'folder'
  | 'engine'
  | 'checkpointStep'
  | 'checkpointPath'
  | 'codeVersion'
>;

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
  | 'codeVersion'
>;

export interface StepRow {
  step: number;
  atMs: number;
  /** NaN and the infinities too; SQLite keeps a NaN as NULL. */
  loss: number;
  gradNorm: number;
  learningRate: number;
  supervisedTokens: number;
  realTokens: number;
  positions: number;
  milliseconds: number;
  flops: number;
  /** Of the whole run up to this step, as all that follow. */
  elapsedMs: number;
  realTokensTotal: number;
  positionsTotal: number;
  supervisedTokensTotal: number;
  millisecondsTotal: number;
  flopsTotal: number;
  /** Sum of loss × supervised tokens, over the steps whose loss is a number. */
  lossTotal: number;
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
  /** Null where it came out as no number. */
  loss: number | null;
  tokens: number;
}

const withTags = `SELECT runs.*,
  (SELECT json_group_array(tag) FROM (SELECT tag FROM runTags WHERE runId = runs.id ORDER BY tag)) AS tags FROM runs`;

/** Columns of the list in the order of its rows; after them come the run's tags, a JSON array. */
export const summaryColumns = [
  ...(['id', 'name', 'status', 'reason', 'createdAtMs', 'startedAtMs', 'endedAtMs', 'elapsedMs'] as const),
  ...(['archivedAtMs', 'deletedAtMs', 'plannedSteps', 'steps', 'firstLoss', 'lastLoss'] as const),
  ...(['evalLossBefore', 'evalLossAfter', 'bestLoss', 'bestStep', 'tokensPerSecond', 'device'] as const),
  ...(['strategy', 'peakLr', 'dataset', 'model', 'fill'] as const),
];

/** The whole list, newest first, without reading one recipe. */
export const listSql = `SELECT ${summaryColumns.join(', ')} FROM runs WHERE kind = 'train' ORDER BY createdAtMs DESC, id`;
/** Of it the runs of a JSON array of ids, in any order. */
export const listOfSql = `SELECT ${summaryColumns.join(', ')} FROM runs
  WHERE id IN (SELECT value FROM json_each(?)) AND +kind = 'train'`;
/** The ids of what `where` holds of, in the order of the list; see `main/core/runs/search/`. */
export const listIdsSql = (where: string) =>
  `SELECT id FROM runs WHERE kind = 'train' AND (${where}) ORDER BY createdAtMs DESC, id`;
const tagsSql = 'SELECT runId, json_group_array(tag) FROM runTags GROUP BY runId';
const tagsOfSql = `SELECT runId, json_group_array(tag) FROM runTags
  WHERE runId IN (SELECT value FROM json_each(?)) GROUP BY runId`;

/** A row of the list: cells as `summaryColumns` names them, then the tags, a JSON array. */
export type ListRow = (string | number | null)[];

/** Everything that is read and written of runs, apart from their series (`series.ts`). */
export function runQueries(db: Db) {
  const insert = db.prepare(
    `INSERT INTO runs (id, name, kind, status, createdAtMs, recipe, hashes, plan, preflight, folder, plannedSteps,
     codeVersion) VALUES (@id, @name, @kind, 'queued', @createdAtMs, @recipe, @hashes, @plan, @preflight, @folder,
     @plannedSteps, @codeVersion)`,
  );
  const updates = new Map<string, Database.Statement>();
  const get = db.prepare(`${withTags} WHERE id = ?`);
  const insertEvent = db.prepare(
    'INSERT INTO runEvents (runId, atMs, step, kind, data) VALUES (?, ?, ?, ?, ?)',
  );
  const insertEvaluation = db.prepare('INSERT OR REPLACE INTO runEvaluations VALUES (?, ?, ?, ?, ?)');
  const insertProfile = db.prepare('INSERT OR REPLACE INTO runProfiles VALUES (?, ?, ?, ?)');

  const listMark = db.prepare('SELECT mark FROM runListKept').pluck();
  const changes = db.prepare('SELECT runId FROM runListChanges').pluck();
  const keep = db.transaction((mark: string, write: () => void) => {
    write();
    db.prepare('INSERT OR REPLACE INTO runListKept VALUES (1, ?)').run(mark);
    db.prepare('DELETE FROM runListChanges').run();
  });

  return {
    insert: (run: NewRun) => void insert.run(run),
    get: (id: string) => get.get(id) as RunListRow | undefined,
    /**
     * The whole list, newest first, or in any order those of it that are named. Ten thousand rows as objects would take
     * twice as long.
     */
    list: (ids?: string[]): ListRow[] => {
      const read = (all: string, some: string): unknown[] =>
        ids === undefined ? db.prepare(all).raw().all() : db.prepare(some).raw().all(JSON.stringify(ids));
      const tags = new Map(read(tagsSql, tagsOfSql) as [string, string][]);
      const rows = read(listSql, listOfSql) as ListRow[];
      for (const row of rows) row.push(tags.get(String(row[0])) ?? '[]');
      return rows;
    },
    listIds: (where: string, parameters: unknown[]) =>
      db
        .prepare(listIdsSql(where))
        .pluck()
        .all(...parameters) as string[],
    /** Tells of every run that this connection changes from now on, its tags included. */
    watch: (onChange: (id: string) => void) => {
      db.function('runChanged', (id: unknown) => {
        onChange(String(id));
        return null;
      });
      const trigger = (name: string, event: string, id: string) =>
        `CREATE TEMP TRIGGER ${name} AFTER ${event} BEGIN SELECT runChanged(${id}); END;`;
      db.exec(
        [
          trigger('runListInserted', 'INSERT ON main.runs', 'new.id'),
          trigger('runListUpdated', 'UPDATE ON main.runs', 'new.id'),
          trigger('runListDeleted', 'DELETE ON main.runs', 'old.id'),
          trigger('runListTagged', 'INSERT ON main.runTags', 'new.runId'),
          trigger('runListUntagged', 'DELETE ON main.runTags', 'old.runId'),
        ].join('\n'),
      );
    },
    /** Another number after every change that another connection has committed. */
    dataVersion: () => db.pragma('data_version', { simple: true }) as number,
    /** Of the file that keeps the list, as `keepList` wrote it last; see migration 0085. */
    listMark: () => listMark.get() as string | undefined,
    /** Ids of the runs that have changed since, whoever changed them, and of those that are gone. */
    listChanges: () => changes.all() as string[],
    /** `write` writes the list as it stands to a file under this mark; changes are noted from here on. */
    keepList: (mark: string, write: () => void) => {
      keep.immediate(mark, write);
    },
    /** What `read` reads is of one state of the database, whatever others write meanwhile. */
    inOneState: <T>(read: () => T): T => db.transaction(read).deferred(),
    /**
     * A home that was moved or copied names its runs' folders where they were. From now on they are those below `runs`,
     * which ends with a separator; engines that work elsewhere are another home's. Returns how many were changed.
     * The oldest and the newest run say whether it was moved: all are changed at once.
     */
    moveInto: (runs: string): number => {
      const isMoved = `SELECT 1 FROM (SELECT * FROM (SELECT id, folder FROM runs ORDER BY rowid LIMIT 1)
        UNION SELECT * FROM (SELECT id, folder FROM runs ORDER BY rowid DESC LIMIT 1)) WHERE folder <> ? || id`;
      if (db.prepare(isMoved).get(runs) === undefined) return 0;
      return db
        .prepare(
          `UPDATE runs SET folder = @runs || id, engine = NULL,
             checkpointPath = CASE WHEN substr(checkpointPath, 1, length(folder)) = folder
               THEN @runs || id || substr(checkpointPath, length(folder) + 1) ELSE checkpointPath END
           WHERE folder <> @runs || id`,
        )
        .run({ runs }).changes;
    },
    find: (name: string) =>
      db
        .prepare(
          `${withTags} WHERE (substr(id, 1, length(@name)) = @name OR name = @name) AND deletedAtMs IS NULL
           ORDER BY createdAtMs DESC`,
        )
        .all({ name }) as RunListRow[],
    /** Of those in the list the one that was made last, whatever the clock said then. */
    latest: () =>
      db
        .prepare(
          `${withTags} WHERE kind = 'train' AND deletedAtMs IS NULL AND archivedAtMs IS NULL
           ORDER BY rowid DESC LIMIT 1`,
        )
        .get() as RunListRow | undefined,
    deletedBefore: (atMs: number) =>
      db.prepare('SELECT id, folder FROM runs WHERE deletedAtMs < ?').all(atMs) as Pick<
        RunRow,
        'id' | 'folder'
      >[],
    /** Takes everything that belongs to it along. */
    remove: (id: string) => void db.prepare('DELETE FROM runs WHERE id = ?').run(id),
    withStatus: (...statuses: string[]) =>
      db
        .prepare(`${withTags} WHERE status IN (SELECT value FROM json_each(?)) ORDER BY createdAtMs`)
        .all(JSON.stringify(statuses)) as RunListRow[],
    update: (id: string, fields: Partial<Omit<RunRow, 'id'>>) => {
      const names = Object.keys(fields);
      if (names.length === 0) return;
      const set = names.map((name) => `${name} = @${name}`).join(', ');
      // A run that trains is updated four times a second: each set of columns is prepared once.
      let statement = updates.get(set);
      if (statement === undefined)
        updates.set(set, (statement = db.prepare(`UPDATE runs SET ${set} WHERE id = @id`)));
      statement.run({ ...fields, id });
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
    removeTags: (runId: string, tags: string[]) => {
      for (const tag of tags) db.prepare('DELETE FROM runTags WHERE runId = ? AND tag = ?').run(runId, tag);
    },
    /** Whether any stored recipe has a field of this last name. */
    hasField: (leaf: string): boolean =>
      db.prepare('SELECT 1 FROM runFields WHERE leaf = ? LIMIT 1').get(leaf) !== undefined,
    addTags: (runId: string, tags: string[]) => {
      const add = db.prepare('INSERT OR IGNORE INTO runTags VALUES (?, ?)');
      db.transaction(() => {
        for (const tag of tags) add.run(runId, tag);
      })();
    },
  };
}

export type RunQueries = ReturnType<typeof runQueries>;
