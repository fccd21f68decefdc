import type { Db } from '../connection.ts';

export interface CalibrationRow {
  key: string;
  device: string;
  atMs: number;
  /** JSON. */
  measured: string;
  /** JSON array, the newest first. */
  runs: string;
}

/** What steps cost, by device, model, budget, engine and kernels. */
export function calibrationQueries(db: Db) {
  const find = db.prepare('SELECT * FROM calibrations WHERE key = ?');
  const put = db.prepare(
    `INSERT INTO calibrations (key, device, atMs, measured) VALUES (@key, @device, @atMs, @measured)
     ON CONFLICT DO UPDATE SET atMs = excluded.atMs, measured = excluded.measured`,
  );
  const setRuns = db.prepare('UPDATE calibrations SET runs = ?, atMs = ? WHERE key = ?');
  return {
    find: (key: string) => find.get(key) as CalibrationRow | undefined,
    /** What runs have shown stays when the same is measured again. */
    put: (row: Omit<CalibrationRow, 'runs'>) => {
      put.run(row);
    },
    setRuns: (key: string, runs: string, atMs: number) => {
      setRuns.run(runs, atMs, key);
    },
  };
}

export type CalibrationQueries = ReturnType<typeof calibrationQueries>;
