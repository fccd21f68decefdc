import type { Db } from '../connection.ts';

/**
 * What steps were measured to cost, and what runs took that they foretold; `key` names device, model, budget, engine and
 * kernels. Ladders: what packing and kernels gained when it was last measured.
 */
export function up(db: Db): void {
  db.exec(`
    CREATE TABLE calibrations (
      key TEXT PRIMARY KEY,
      device TEXT NOT NULL,
      atMs INTEGER NOT NULL,
      /** JSON: how it was measured, and {bins, positions, tokens, squares, shape, milliseconds} of each step. */
      measured TEXT NOT NULL,
      /** JSON, the newest first: {load, milliseconds}. */
      runs TEXT NOT NULL DEFAULT '[]'
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ladders (
      id INTEGER PRIMARY KEY,
      atMs INTEGER NOT NULL,
      /** JSON, as the contract has it. */
      data TEXT NOT NULL
    ) STRICT;
  `);
}
