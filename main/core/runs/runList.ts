import { randomUUID } from 'node:crypto';
import type { RunQueries } from '../../../db/queries/runs.ts';
import type { PackedColumn, PackedRows } from '../../contract/rows.ts';
import { readSnapshot, writeSnapshot } from './listSnapshot.ts';
import { packList } from './packList.ts';
import { joinRows, pickRows } from './pickRows.ts';

/** `all`: neither archived nor deleted. `archived`: archived ones too. `deleted`: those alone. */
export type Shelf = 'all' | 'archived' | 'deleted';

/** Beyond this the whole list is read again: it costs as much. */
const maxPatched = 500;
/** As many found runs are read by themselves where the list was not read yet. */
const maxFoundAlone = 2000;

/**
 * The list of runs, kept in memory as the columns that travel, and up to date by what the database tells of changes: of
 * ten thousand runs only those are read again that changed. Another program's changes make it read all. `snapshot` names
 * a file that keeps the columns between cores, so that a fresh one reads only the rows that changed since.
 */
export class RunList {
  private readonly queries: RunQueries;
  private readonly snapshot: string | undefined;
  /** Of every shelf, newest first. */
  private rows: PackedRows | undefined;
  private shelves = new Map<Shelf, PackedRows>();
  private places: Map<string, number> | undefined;
  private readonly changed = new Set<string>();
  private dataVersion: number | undefined;
  /** Whether the file is the one that the database has marked. */
  private isKept = false;

  constructor(queries: RunQueries, snapshot?: string) {
    this.queries = queries;
    this.snapshot = snapshot;
    queries.watch((id) => {
      this.changed.add(id);
    });
  }

  all(shelf: Shelf): PackedRows {
    const rows = this.refresh();
    let shown = this.shelves.get(shelf);
    if (shown === undefined) this.shelves.set(shelf, (shown = onShelf(rows, shelf)));
    return shown;
  }

  /** Those that a condition on `runs` holds of. */
  find(shelf: Shelf, { sql, parameters }: { sql: string; parameters: unknown[] }): PackedRows {
    const ids = this.queries.listIds(sql, parameters);
    const isKnown = this.rows !== undefined || ids.length > maxFoundAlone;
    const rows = isKnown ? this.refresh() : packList(this.queries.list(ids));
    const placeOf = rows === this.rows ? (this.places ??= placesById(rows)) : placesById(rows);
    const isOn = shelfTest(rows, shelf);
    const found = ids.map((id) => placeOf.get(id) ?? -1).filter((place) => place >= 0 && isOn(place));
    return pickRows(rows, found);
  }

  /** Keeps what is known for the next core. @throws what keeps the file from being written */
  save(): void {
    const path = this.snapshot;
    if (path === undefined || this.rows === undefined) return;
    if (this.isKept && this.queries.listChanges().length === 0) return;
    const mark = randomUUID();
    this.queries.keepList(mark, () => {
      writeSnapshot(path, { mark, packed: this.refresh() });
    });
    this.isKept = true;
  }

  private refresh(): PackedRows {
    return this.queries.inOneState(() => {
      const dataVersion = this.queries.dataVersion();
      const known = dataVersion === this.dataVersion ? this.rows : undefined;
      if (known !== undefined && this.changed.size === 0) return known;
      const isPatched = known !== undefined && this.changed.size <= maxPatched;
      const rows = isPatched ? this.patch(known, [...this.changed]) : this.readAll();
      this.rows = rows;
      this.dataVersion = dataVersion;
      this.changed.clear();
      this.shelves.clear();
      this.places = undefined;
      return rows;
    });
  }

  private readAll(): PackedRows {
    const kept = this.rows === undefined ? this.readKept() : undefined;
    this.isKept ||= kept !== undefined;
    const changed = kept === undefined ? [] : this.queries.listChanges();
    if (kept === undefined || changed.length > maxPatched) return packList(this.queries.list());
    return changed.length === 0 ? kept : this.patch(kept, changed);
  }

  private readKept(): PackedRows | undefined {
    const mark = this.queries.listMark();
    if (this.snapshot === undefined || mark === undefined) return undefined;
    return readSnapshot(this.snapshot, mark);
  }

  private patch(rows: PackedRows, ids: string[]): PackedRows {
    const fresh = packList(this.queries.list(ids));
    const isChanged = new Set(ids);
    const joined = joinRows(rows, fresh);
    const [id, createdAtMs] = [textsOf(joined, 'id'), numbersOf(joined, 'createdAtMs')];
    const places = id.map((_, place) => place);
    const left = places.filter((place) => place >= rows.count || !isChanged.has(id[place] ?? ''));
    left.sort((a, b) => {
      const later = (createdAtMs[b] ?? 0) - (createdAtMs[a] ?? 0);
      return later || ((id[a] ?? '') < (id[b] ?? '') ? -1 : 1);
    });
    return pickRows(joined, left);
  }
}

const placesById = (rows: PackedRows) => new Map(textsOf(rows, 'id').map((id, place) => [id, place]));

function onShelf(rows: PackedRows, shelf: Shelf): PackedRows {
  const isOn = shelfTest(rows, shelf);
  const places: number[] = [];
  for (let place = 0; place < rows.count; place += 1) if (isOn(place)) places.push(place);
  return places.length === rows.count ? rows : pickRows(rows, places);
}

function shelfTest(rows: PackedRows, shelf: Shelf): (place: number) => boolean {
  const [deletedAtMs, archived] = [numbersOf(rows, 'deletedAtMs'), flagsOf(rows, 'archived')];
  return (place) => {
    const isDeleted = !Number.isNaN(deletedAtMs[place]);
    if (shelf === 'deleted' || isDeleted) return shelf === 'deleted' && isDeleted;
    return shelf === 'archived' || archived[place] === 0;
  };
}

const column = <K extends PackedColumn['kind']>({ columns }: PackedRows, name: string, kind: K) =>
  columns.find((each) => each.name === name && each.kind === kind) as
    Extract<PackedColumn, { kind: K }> | undefined;
const textsOf = (rows: PackedRows, name: string) => column(rows, name, 'texts')?.values ?? [];
const numbersOf = (rows: PackedRows, name: string) =>
  column(rows, name, 'numbers')?.values ?? new Float64Array();
const flagsOf = (rows: PackedRows, name: string) => column(rows, name, 'flags')?.values ?? new Uint8Array();
