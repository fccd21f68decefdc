import { appendFileSync, createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Place } from './readers/rows.ts';

/** A row that was left out: where it stands and why. */
export type SkippedRow = { file: string; reason: string } & Place;

export interface Warning {
  code: string;
  count: number;
  firstAt: { file: string } & Place;
}

/** Counts warnings by code and remembers where each was met first. */
export class WarningCounter {
  private readonly warnings = new Map<string, Warning>();

  add(code: string, file: string, at: Place, count = 1): void {
    const known = this.warnings.get(code);
    if (known !== undefined) known.count += count;
    else this.warnings.set(code, { code, count, firstAt: { file, ...at } });
  }

  list(): Warning[] {
    return [...this.warnings.values()];
  }
}

const flushRows = 1000;
/** Reasons told apart; what a row's own content makes different beyond that is counted with no one. */
const mostReasons = 1000;

/** Writes skipped rows to a file as they come, so that a million of them need no memory. */
export class SkippedLog {
  count = 0;
  /** The first rows, at most a hundred. */
  readonly first: SkippedRow[] = [];
  private readonly reasons = new Map<string, { count: number; first: SkippedRow }>();
  private readonly path: string;
  private pending: string[] = [];

  constructor(path: string) {
    this.path = path;
  }

  add(row: SkippedRow): void {
    this.count += 1;
    if (this.first.length < 100) this.first.push(row);
    const known = this.reasons.get(row.reason);
    if (known !== undefined) known.count += 1;
    else if (this.reasons.size < mostReasons) this.reasons.set(row.reason, { count: 1, first: row });
    this.pending.push(JSON.stringify(row));
    if (this.pending.length >= flushRows) this.flush();
  }

  /** The reason of most rows, how many they are, and the first of them. Some row was skipped. */
  get mostOften(): { reason: string; count: number; first: SkippedRow } {
    const [most] = [...this.reasons].sort(([, a], [, b]) => b.count - a.count);
    if (most === undefined) throw new Error('no row was skipped');
    return { reason: most[0], ...most[1] };
  }

  flush(): void {
    appendFileSync(this.path, this.pending.map((line) => `${line}\n`).join(''));
    this.pending = [];
  }
}

/** The first `limit` skipped rows of a cache, from number `from` on. */
export async function readSkipped(path: string, from: number, limit: number): Promise<SkippedRow[]> {
  const rows: SkippedRow[] = [];
  let index = 0;
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  for await (const line of lines) {
    if (index++ < from) continue;
    if (rows.length >= limit) break;
    rows.push(JSON.parse(line) as SkippedRow);
  }
  return inOrder(rows);
}

/** By file and place: rows with nothing to learn are known only once they are tokenised, a batch later than the others. */
export function inOrder(rows: readonly SkippedRow[]): SkippedRow[] {
  const orderOf = new Map([...new Set(rows.map(({ file }) => file))].map((file, order) => [file, order]));
  const order = (row: SkippedRow) => orderOf.get(row.file) ?? 0;
  return rows.toSorted((a, b) => order(a) - order(b) || placeOf(a) - placeOf(b));
}

/** The line or the row, whichever the file's format counts. */
export function placeOf(at: Place): number {
  return 'line' in at ? at.line : at.row;
}
