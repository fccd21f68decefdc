import type { Db } from '../connection.ts';

/**
 * Runs and everything that belongs to one. `runMetrics` holds every value as it came; `runRollups` holds
 * min/max/sum over blocks of 16 to 65536 steps, kept as values arrive, so that a chart reads thousands of
 * rows instead of millions and shows every spike.
 */
export function up(db: Db): void {
  db.exec(`
    CREATE TABLE runs (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      kind TEXT NOT NULL DEFAULT 'train' CHECK (kind IN ('train', 'benchmark')),
      status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'paused', 'completed', 'stopped', 'failed')),
      reason TEXT,
      createdAtMs INTEGER NOT NULL,
      startedAtMs INTEGER,
      endedAtMs INTEGER,
      activeMs REAL NOT NULL DEFAULT 0,
      archivedAtMs INTEGER,
      notes TEXT NOT NULL DEFAULT '',
      recipe TEXT NOT NULL,
      hashes TEXT NOT NULL,
      plan TEXT NOT NULL,
      device TEXT,
      kernels TEXT,
      preflight TEXT,
      folder TEXT NOT NULL,
      engine TEXT,
      plannedSteps INTEGER NOT NULL,
      steps INTEGER NOT NULL DEFAULT 0,
      checkpointStep INTEGER,
      checkpointPath TEXT,
      firstLoss REAL,
      lastLoss REAL,
      evalLossBefore REAL,
      evalLossAfter REAL,
      tokensPerSecond REAL
    ) STRICT;
    CREATE INDEX runsByTime ON runs (kind, createdAtMs DESC);

    CREATE TABLE runTags (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      tag TEXT NOT NULL,
      PRIMARY KEY (runId, tag)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE runEvents (
      id INTEGER PRIMARY KEY,
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      atMs INTEGER NOT NULL,
      step INTEGER,
      kind TEXT NOT NULL,
      data TEXT NOT NULL
    ) STRICT;
    CREATE INDEX runEventsByRun ON runEvents (runId, id);

    CREATE TABLE runSteps (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      atMs INTEGER NOT NULL,
      loss REAL NOT NULL,
      gradNorm REAL NOT NULL,
      learningRate REAL NOT NULL,
      supervisedTokens INTEGER NOT NULL,
      realTokens INTEGER NOT NULL,
      positions INTEGER NOT NULL,
      milliseconds REAL NOT NULL,
      PRIMARY KEY (runId, step)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE runRollups (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      metric TEXT NOT NULL,
      blockSteps INTEGER NOT NULL,
      block INTEGER NOT NULL,
      count INTEGER NOT NULL,
      minimum REAL NOT NULL,
      maximum REAL NOT NULL,
      total REAL NOT NULL,
      PRIMARY KEY (runId, metric, blockSteps, block)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE runEvaluations (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      phase TEXT NOT NULL,
      loss REAL NOT NULL,
      tokens INTEGER NOT NULL,
      PRIMARY KEY (runId, step, phase)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE runProfiles (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      atMs INTEGER NOT NULL,
      data TEXT NOT NULL,
      PRIMARY KEY (runId, step)
    ) STRICT, WITHOUT ROWID;
  `);
}
