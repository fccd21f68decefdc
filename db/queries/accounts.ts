import type { Db } from '../connection.ts';

/** Where the time of runs went: what each engine that worked on one said last. */
export function accountQueries(db: Db) {
  const insert = db.prepare('INSERT OR REPLACE INTO runAccounts VALUES (?, ?, ?)');
  const later = db.prepare('DELETE FROM runAccounts WHERE runId = ? AND fromStep > ?');
  const read = db.prepare('SELECT data FROM runAccounts WHERE runId = ? ORDER BY fromStep').pluck();
  return {
    /** An account holds all that follows its first step: one that began later was of steps that are trained again. */
    put: (runId: string, fromStep: number, data: string) => {
      later.run(runId, fromStep);
      insert.run(runId, fromStep, data);
    },
    of: (runId: string) => read.all(runId) as string[],
  };
}

export type AccountQueries = ReturnType<typeof accountQueries>;
