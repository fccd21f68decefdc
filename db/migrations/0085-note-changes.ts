import type { Db } from '../connection.ts';

/**
 * Which runs have changed, or their tags, since the list of runs was last kept in a file, and the mark of that file. The
 * mark is drawn, not counted: a copy of the database that is brought back knows no file that was made after it.
 */
export function up(db: Db): void {
  const events = {
    Inserted: ['INSERT ON runs', 'new.id'],
    Updated: ['UPDATE ON runs', 'new.id'],
    Deleted: ['DELETE ON runs', 'old.id'],
    Tagged: ['INSERT ON runTags', 'new.runId'],
    Untagged: ['DELETE ON runTags', 'old.runId'],
  } as const;
  for (const [name, [event, id]] of Object.entries(events)) {
    // Of a history that an unfinished version of this wrote.
    db.exec(`DROP TRIGGER IF EXISTS runListVersion${name}`);
    db.exec(
      `CREATE TRIGGER runListChange${name} AFTER ${event} BEGIN INSERT OR IGNORE INTO runListChanges VALUES (${id}); END`,
    );
  }
  db.exec(`
    DROP TABLE IF EXISTS runListVersion;
    CREATE TABLE runListChanges (runId TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE runListKept (id INTEGER PRIMARY KEY CHECK (id = 1), mark TEXT NOT NULL) STRICT;
  `);
}
