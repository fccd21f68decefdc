import type { Db } from '../connection.ts';

/**
 * Positions summed up to each step, so that what a run computed is read from its newest step alone. Of steps that are
 * there already only the newest of each run gets it; where a run goes on from an older one it is summed then.
 */
export function up(db: Db): void {
  db.exec(`
    ALTER TABLE runSteps ADD COLUMN positionsTotal INTEGER;
    UPDATE runSteps SET positionsTotal = (SELECT sum(s.positions) FROM runSteps s WHERE s.runId = runSteps.runId)
      FROM (SELECT id, (SELECT max(step) FROM runSteps WHERE runId = id) AS newest FROM runs)
      WHERE runId = id AND step = newest;
  `);
}
