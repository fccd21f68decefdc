import type { Db } from '../connection.ts';

/**
 * Totals beside each step, so that a run's curves have other axes than steps and its sums need no scan; values that are
 * no numbers; notes on the time line, samples, the best checkpoint; search tables kept by triggers; saved searches; a
 * bin for deleted runs. `runsSummary` covers the list: it never reads a recipe.
 */
export const movesData = true;

export function up(db: Db): void {
  steps(db);
  rollups(db);
  evaluations(db);
  columns(db);
  notesAndSamples(db);
  search(db);
}

function steps(db: Db): void {
  db.exec(`
    CREATE TABLE newSteps (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      atMs INTEGER NOT NULL,
      loss REAL,
      gradNorm REAL,
      learningRate REAL NOT NULL,
      supervisedTokens INTEGER NOT NULL,
      realTokens INTEGER NOT NULL,
      positions INTEGER NOT NULL,
      milliseconds REAL NOT NULL,
      flops REAL NOT NULL,
      elapsedMs REAL NOT NULL,
      realTokensTotal INTEGER NOT NULL,
      supervisedTokensTotal INTEGER NOT NULL,
      millisecondsTotal REAL NOT NULL,
      flopsTotal REAL NOT NULL,
      lossTotal REAL NOT NULL,
      PRIMARY KEY (runId, step)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO newSteps
      SELECT runId, step, atMs, loss, gradNorm, learningRate, supervisedTokens, realTokens, positions, milliseconds, 0,
        sum(milliseconds) OVER sofar, sum(realTokens) OVER sofar, sum(supervisedTokens) OVER sofar,
        sum(milliseconds) OVER sofar, 0, sum(loss * supervisedTokens) OVER sofar
      FROM runSteps WINDOW sofar AS (PARTITION BY runId ORDER BY step) ORDER BY runId, step;
    DROP TABLE runSteps;
    ALTER TABLE newSteps RENAME TO runSteps;
  `);
}

function rollups(db: Db): void {
  db.exec(`
    CREATE TABLE newRollups (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      metric TEXT NOT NULL,
      blockSteps INTEGER NOT NULL,
      block INTEGER NOT NULL,
      /** Of the values that are numbers, and of those that are none. */
      count INTEGER NOT NULL,
      numNonFinite INTEGER NOT NULL,
      minimum REAL,
      maximum REAL,
      total REAL NOT NULL,
      PRIMARY KEY (runId, metric, blockSteps, block)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO newRollups
      SELECT runId, metric, blockSteps, block, count, 0, minimum, maximum, total FROM runRollups ORDER BY 1, 2, 3, 4;
    DROP TABLE runRollups;
    ALTER TABLE newRollups RENAME TO runRollups;
  `);
}

function evaluations(db: Db): void {
  db.exec(`
    CREATE TABLE newEvaluations (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      phase TEXT NOT NULL,
      loss REAL,
      tokens INTEGER NOT NULL,
      PRIMARY KEY (runId, step, phase)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO newEvaluations SELECT runId, step, phase, loss, tokens FROM runEvaluations ORDER BY 1, 2, 3;
    DROP TABLE runEvaluations;
    ALTER TABLE newEvaluations RENAME TO runEvaluations;
  `);
}

/** What the list shows of recipe and plan. Generated columns would do, but an index of them covers nothing. */
const derived = `strategy = recipe ->> '$.packing.strategy', peakLr = recipe ->> '$.optimizer.lr',
  dataset = recipe ->> '$.dataset', model = recipe ->> '$.model', fill = plan ->> '$.fill'`;

function columns(db: Db): void {
  db.exec(`
    ALTER TABLE runs ADD COLUMN elapsedMs REAL NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN bestLoss REAL;
    ALTER TABLE runs ADD COLUMN bestStep INTEGER;
    ALTER TABLE runs ADD COLUMN codeVersion TEXT;
    ALTER TABLE runs ADD COLUMN deletedAtMs INTEGER;
    ALTER TABLE runs ADD COLUMN strategy TEXT;
    ALTER TABLE runs ADD COLUMN peakLr REAL;
    ALTER TABLE runs ADD COLUMN dataset TEXT;
    ALTER TABLE runs ADD COLUMN model TEXT;
    ALTER TABLE runs ADD COLUMN fill REAL;
    UPDATE runs SET ${derived};
    UPDATE runs SET elapsedMs = activeMs;
    UPDATE runs SET (bestLoss, bestStep) =
      (SELECT loss, step FROM runEvaluations WHERE runId = runs.id AND step > 0 ORDER BY loss LIMIT 1);
    DROP INDEX runsByTime;
    CREATE INDEX runsSummary ON runs (kind, createdAtMs DESC, id, name, status, reason, startedAtMs, endedAtMs, activeMs,
      elapsedMs, archivedAtMs, deletedAtMs, plannedSteps, steps, firstLoss, lastLoss, evalLossBefore, evalLossAfter,
      bestLoss, bestStep, tokensPerSecond, device, strategy, peakLr, dataset, model, fill);
  `);
}

function notesAndSamples(db: Db): void {
  db.exec(`
    CREATE TABLE runNotes (
      id INTEGER PRIMARY KEY,
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      atMs INTEGER NOT NULL,
      text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX runNotesByRun ON runNotes (runId, step);

    CREATE TABLE runSamples (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      position INTEGER NOT NULL,
      prompt TEXT NOT NULL,
      text TEXT NOT NULL,
      PRIMARY KEY (runId, step, position)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE savedSearches (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      query TEXT NOT NULL,
      createdAtMs INTEGER NOT NULL
    ) STRICT;
  `);
}

function search(db: Db): void {
  const fields = (run: string) => `
    INSERT OR REPLACE INTO runFields SELECT ${run}.id, lower(substr(fullkey, 3)), lower(key), CASE WHEN type IN ('true', 'false') THEN type ELSE CAST(atom AS TEXT) END,
      CASE WHEN type IN ('integer', 'real') THEN CAST(atom AS REAL) END
    FROM json_tree(${run}.recipe) WHERE atom IS NOT NULL AND typeof(key) = 'text'`;
  const text = (id: string) =>
    `INSERT OR REPLACE INTO runTexts SELECT runId, text FROM runTextSource WHERE runId = ${id}`;
  db.exec(`
    /** A run's recipe, one row a field: optimizer.lr, its last word lr, and its value as text and as a number. */
    CREATE TABLE runFields (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      field TEXT NOT NULL,
      leaf TEXT NOT NULL,
      value TEXT NOT NULL COLLATE NOCASE,
      number REAL,
      PRIMARY KEY (runId, field)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX runFieldsByValue ON runFields (leaf, value, field);
    CREATE INDEX runFieldsByNumber ON runFields (leaf, number, field);

    /** What bare words are looked for in. */
    CREATE TABLE runTexts (
      runId TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
      text TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE VIEW runTextSource AS SELECT id AS runId, name || char(10) || id || char(10) || status || char(10) || notes
      || char(10) || coalesce((SELECT group_concat(tag, char(10)) FROM runTags WHERE runId = runs.id), '')
      || char(10) || coalesce((SELECT group_concat(text, char(10)) FROM runNotes WHERE runId = runs.id), '') AS text
      FROM runs;
    ${fields('runs').replace('FROM json_tree', 'FROM runs, json_tree')};
    INSERT INTO runTexts SELECT runId, text FROM runTextSource;

    CREATE TRIGGER runInserted AFTER INSERT ON runs BEGIN
      UPDATE runs SET ${derived} WHERE id = new.id; ${fields('new')}; ${text('new.id')}; END;
    CREATE TRIGGER runRecipeChanged AFTER UPDATE OF recipe ON runs BEGIN
      UPDATE runs SET ${derived} WHERE id = new.id;
      DELETE FROM runFields WHERE runId = new.id; ${fields('new')}; END;
    CREATE TRIGGER runWordsChanged AFTER UPDATE OF name, status, notes ON runs
      WHEN new.name <> old.name OR new.status <> old.status OR new.notes <> old.notes BEGIN ${text('new.id')}; END;
    CREATE TRIGGER runTagged AFTER INSERT ON runTags BEGIN ${text('new.runId')}; END;
    CREATE TRIGGER runUntagged AFTER DELETE ON runTags BEGIN ${text('old.runId')}; END;
    CREATE TRIGGER runNoted AFTER INSERT ON runNotes BEGIN ${text('new.runId')}; END;
    CREATE TRIGGER runNoteChanged AFTER UPDATE ON runNotes BEGIN ${text('new.runId')}; END;
    CREATE TRIGGER runNoteRemoved AFTER DELETE ON runNotes BEGIN ${text('old.runId')}; END;
  `);
}
