import { summaryColumns, type ListRow, type RunQueries } from '../../../db/queries/runs.ts';
import type { PackedRows } from '../../contract/rows.ts';
import { packList } from './packList.ts';

/** `all`: neither archived nor deleted. `archived`: archived ones too. `deleted`: those alone. */
export type Shelf = 'all' | 'archived' | 'deleted';

/** Beyond this the whole list is read again: it costs as much. */
const maxPatched = 500;

const createdAt = summaryColumns.indexOf('createdAtMs');
const archivedAt = summaryColumns.indexOf('archivedAtMs');
const deletedAt = summaryColumns.indexOf('deletedAtMs');
const isOn: Record<Shelf, (row: ListRow) => boolean> = {
  all: (row) => row[deletedAt] === null && row[archivedAt] === null,
  archived: (row) => row[deletedAt] === null,
  deleted: (row) => row[deletedAt] !== null,
};

/**
 * The list of runs, kept in memory and up to date by what the database tells of changes: of ten thousand runs only those
 * are read again that changed. Another program's changes make it read all.
 */
export class RunList {
  private readonly queries: RunQueries;
  /** Newest first. */
  private rows: ListRow[] = [];
  private byId = new Map<string, ListRow>();
  private packed = new Map<Shelf, PackedRows>();
  private readonly changed = new Set<string>();
  private dataVersion: number | undefined;

  constructor(queries: RunQueries) {
    this.queries = queries;
    queries.watch((id) => {
      this.changed.add(id);
    });
  }

  all(shelf: Shelf): PackedRows {
    this.refresh();
    let packed = this.packed.get(shelf);
    if (packed === undefined) this.packed.set(shelf, (packed = packList(this.rows.filter(isOn[shelf]))));
    return packed;
  }

  /** Those that a condition on `runs` holds of. */
  find(shelf: Shelf, { sql, parameters }: { sql: string; parameters: unknown[] }): PackedRows {
    this.refresh();
    const found: ListRow[] = [];
    for (const id of this.queries.listIds(sql, parameters)) {
      const row = this.byId.get(id);
      if (row !== undefined && isOn[shelf](row)) found.push(row);
    }
    return packList(found);
  }

  private refresh(): void {
    const dataVersion = this.queries.dataVersion();
    if (dataVersion === this.dataVersion && this.changed.size === 0) return;
    const isPatched = dataVersion === this.dataVersion && this.changed.size <= maxPatched;
    if (isPatched) this.patch([...this.changed]);
    else {
      this.rows = this.queries.list();
      this.byId = new Map(this.rows.map((row) => [String(row[0]), row]));
    }
    this.dataVersion = dataVersion;
    this.changed.clear();
    this.packed.clear();
  }

  private patch(ids: string[]): void {
    const fresh = new Map(this.queries.list(ids).map((row) => [String(row[0]), row]));
    for (const id of ids) {
      const row = fresh.get(id);
      if (row === undefined) this.byId.delete(id);
      else this.byId.set(id, row);
    }
    this.rows = [...this.byId.values()].sort(newestFirst);
  }
}

function newestFirst(a: ListRow, b: ListRow): number {
  const [later, earlier] = [Number(b[createdAt]), Number(a[createdAt])];
  return later - earlier || (String(a[0]) < String(b[0]) ? -1 : 1);
}
