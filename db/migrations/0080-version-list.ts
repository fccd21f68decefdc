import type { Db } from '../connection.ts';

/**
 * A number that is another one after every change of a run or of its tags: what was made of the list of runs is known to
 * be of this state of the database, or to be of another. It is drawn, not counted: a copy that is brought back and
 * changed never comes to a number that something else was made at.
 */
export function up(db: Db): void {
  const on = (name: string, event: string) =>
    `CREATE TRIGGER ${name} AFTER ${event} BEGIN UPDATE runListVersion SET version = random(); END;`;
  db.exec(`
    CREATE TABLE runListVersion (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL) STRICT;
    INSERT INTO runListVersion VALUES (1, random());
    ${on('runListVersionInserted', 'INSERT ON runs')}
    ${on('runListVersionUpdated', 'UPDATE ON runs')}
    ${on('runListVersionDeleted', 'DELETE ON runs')}
    ${on('runListVersionTagged', 'INSERT ON runTags')}
    ${on('runListVersionUntagged', 'DELETE ON runTags')}
  `);
}
