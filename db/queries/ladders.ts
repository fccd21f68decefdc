import type { Db } from '../connection.ts';

export interface LadderRow {
  id: number;
  atMs: number;
  /** JSON. */
  data: string;
}

export function ladderQueries(db: Db) {
  const add = db.prepare('INSERT INTO ladders (atMs, data) VALUES (?, ?)');
  const newest = db.prepare('SELECT * FROM ladders ORDER BY id DESC LIMIT ?');
  return {
    add: (atMs: number, data: string) => Number(add.run(atMs, data).lastInsertRowid),
    newest: (limit: number) => newest.all(limit) as LadderRow[],
  };
}

export type LadderQueries = ReturnType<typeof ladderQueries>;
