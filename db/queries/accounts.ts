import type { Db } from '../connection.ts';

/** Where the time of runs went: what each engine that worked on one said last. */
export function accountQueries(db: Db) {
  const insert = db.prepare('INSERT OR REPLACE INTO runAccounts VALUES (?, ?, ?)');
  const read = db.prepare('SELECT data FROM runAccounts WHERE runId = ? ORDER BY fromStep').pluck();
  return {
    put: (runId: string, fromStep: number, data: string) => {
      insert.run(runId, fromStep, data);
    },
    of: (runId: string) => read.all(runId) as string[],
  };
}

export type AccountQueries = ReturnType<typeof accountQueries>;
