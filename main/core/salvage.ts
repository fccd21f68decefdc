import { openDatabase, type Db } from '../../db/connection.ts';

export interface Salvaged {
  /** Rows brought over. */
  rows: number;
  /** Tables of which rows could not be read. */
  damagedTables: string[];
}

/** Kept by triggers, filled as runs arrive; and the mark of a list that was kept of all rows. */
const derived = new Set(['runFields', 'runTexts', 'runListChanges', 'runListKept']);

/** Copies every row that can be read into a new database of the newest version. */
export async function salvage(source: Db, target: string): Promise<Salvaged> {
  const into = await openDatabase(target);
  try {
    // A row whose run was lost is still worth keeping until all is read; orphans go at the end.
    into.pragma('foreign_keys = OFF');
    const tables = into
      .prepare(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'",
      )
      .pluck()
      .all() as string[];
    const result: Salvaged = { rows: 0, damagedTables: [] };
    for (const table of tables.filter((name) => !derived.has(name))) {
      const { rows, isWhole } = copyTable(source, into, table);
      result.rows += rows;
      if (!isWhole) result.damagedTables.push(table);
    }
    for (const { table, rowid, parent } of orphans(into)) {
      if (rowid !== null) into.prepare(`DELETE FROM "${table}" WHERE rowid = ?`).run(rowid);
      else into.prepare(`DELETE FROM "${table}" WHERE runId NOT IN (SELECT id FROM "${parent}")`).run();
    }
    into.pragma('wal_checkpoint(TRUNCATE)');
    return result;
  } finally {
    into.close();
  }
}

const orphans = (db: Db) =>
  db.pragma('foreign_key_check') as { table: string; rowid: number | null; parent: string }[];

function copyTable(source: Db, into: Db, table: string): { rows: number; isWhole: boolean } {
  const columns = (name: Db) =>
    name.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[];
  const known = new Set(columns(into));
  const shared = columns(source).filter((name) => known.has(name));
  if (shared.length === 0) return { rows: 0, isWhole: true };
  const list = shared.map((name) => `"${name}"`).join(', ');
  const insert = into.prepare(
    `INSERT OR IGNORE INTO "${table}" (${list}) VALUES (${shared.map(() => '?').join(', ')})`,
  );
  let rows = 0;
  let isWhole = true;
  // From either end: damage in the middle costs only what lies in it.
  for (const order of ['ASC', 'DESC']) {
    if (order === 'DESC' && isWhole) break;
    into.exec('BEGIN');
    try {
      const read = source.prepare(`SELECT ${list} FROM "${table}" ORDER BY 1 ${order}`).raw();
      for (const row of read.iterate() as IterableIterator<unknown[]>) rows += insert.run(...row).changes;
    } catch {
      isWhole = false;
    } finally {
      into.exec('COMMIT');
    }
  }
  return { rows, isWhole };
}
