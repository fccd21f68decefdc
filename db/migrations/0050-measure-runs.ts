import type { Db } from '../connection.ts';

/**
 * What was measured of runs beside their steps. `runAccounts`: where an engine's time went, one row for each engine
 * that worked on the run. `runTelemetry`: chunks of equally long columns, one row a field, values as Float64 (NaN
 * where a device did not say); the row of the field '' holds their moments, as Uint32 milliseconds after `startMs`.
 * Minimum and maximum are of the chunk.
 */
export function up(db: Db): void {
  db.exec(`
    CREATE TABLE runAccounts (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      fromStep INTEGER NOT NULL,
      data TEXT NOT NULL,
      PRIMARY KEY (runId, fromStep)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE runTelemetry (
      runId TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
      source TEXT NOT NULL,
      field TEXT NOT NULL,
      startMs INTEGER NOT NULL,
      count INTEGER NOT NULL,
      minimum REAL,
      maximum REAL,
      atMs BLOB NOT NULL,
      data BLOB NOT NULL,
      PRIMARY KEY (runId, source, field, startMs)
    ) STRICT, WITHOUT ROWID;
  `);
}
