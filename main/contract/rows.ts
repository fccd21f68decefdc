/** Many objects of one kind as columns: ten thousand travel several times faster than one by one. */
export interface PackedRows {
  count: number;
  columns: PackedColumn[];
}

export type PackedColumn = { name: string } &
  /** NaN: the row has no such field. */
  (
    | { kind: 'numbers'; values: Float64Array }
    | { kind: 'flags'; values: Uint8Array }
    /** Texts of which nearly each is another. */
    | { kind: 'texts'; values: string[] }
    /** Each word, or list of words, once, and which of them a row has; `words.length`: none. */
    | { kind: 'words'; words: (string | string[])[]; places: Uint32Array }
  );

type Cells = readonly (string | number | null)[];

/** @param place of the column's cell in each row; so for all that make columns */
export function numberColumn(name: string, rows: readonly Cells[], place: number): PackedColumn {
  const values = new Float64Array(rows.length);
  let i = 0;
  for (const row of rows) values[i++] = (row[place] as number | null) ?? Number.NaN;
  return { name, kind: 'numbers', values };
}

/** Whether the cell holds anything. */
export function flagColumn(name: string, rows: readonly Cells[], place: number): PackedColumn {
  const values = new Uint8Array(rows.length);
  let i = 0;
  for (const row of rows) values[i++] = row[place] === null ? 0 : 1;
  return { name, kind: 'flags', values };
}

export function textColumn(name: string, rows: readonly Cells[], place: number): PackedColumn {
  return { name, kind: 'texts', values: rows.map((row) => row[place] as string) };
}

/** @param wordOf makes of a value that is told apart by its text what the row holds */
export function wordColumn(
  name: string,
  rows: readonly Cells[],
  place: number,
  wordOf: (text: string) => string | string[] = (text) => text,
): PackedColumn {
  const known = new Map<string, number>();
  const places = new Uint32Array(rows.length);
  const absent: number[] = [];
  let i = 0;
  // Rows of one kind come together: most have the word of the row before.
  let [last, lastPlace] = ['', -1];
  for (const row of rows) {
    const text = row[place] as string | null;
    if (text === null) absent.push(i);
    else if (text !== last || lastPlace < 0) {
      last = text;
      lastPlace = known.get(text) ?? known.size;
      if (lastPlace === known.size) known.set(text, lastPlace);
    }
    places[i++] = lastPlace;
  }
  for (const at of absent) places[at] = known.size;
  return { name, kind: 'words', words: [...known.keys()].map(wordOf), places };
}

/** What a field of the objects is: a column of it holds nothing else. */
export interface FieldKind {
  name: string;
  kind: PackedColumn['kind'];
  /** Of `words`: lists of words. */
  isList: boolean;
  isOptional: boolean;
  /** Of `words`: nothing but these. */
  choices?: readonly string[] | undefined;
}

/** Whether a value is columns of such fields, every one that must be there, each as long as it has to be. */
export function isPacked(value: unknown, fields: readonly FieldKind[]): value is PackedRows {
  const { count, columns } = (value ?? {}) as Partial<PackedRows>;
  if (typeof count !== 'number' || !Array.isArray(columns)) return false;
  const known = new Map(fields.map((field) => [field.name, field]));
  const isWhole = columns.every((column) => {
    const field = known.get(column.name);
    return field !== undefined && isColumn(column, field, count);
  });
  const names = new Set(columns.map(({ name }) => name));
  return isWhole && fields.every(({ name, isOptional }) => isOptional || names.has(name));
}

function isColumn(column: PackedColumn, { kind, isList, isOptional, choices }: FieldKind, count: number) {
  if (column.kind !== kind) return false;
  switch (column.kind) {
    case 'numbers':
      return hasLength(column.values, Float64Array, count) && (isOptional || !column.values.includes(NaN));
    case 'flags':
      return hasLength(column.values, Uint8Array, count);
    case 'texts':
      return column.values.length === count && column.values.every((each) => typeof each === 'string');
    case 'words': {
      const { words, places } = column;
      const most = words.length - (isOptional ? 0 : 1);
      const isWord = (each: unknown) => typeof each === 'string' && (choices?.includes(each) ?? true);
      const areWords = words.every((each) =>
        isList ? Array.isArray(each) && each.every(isWord) : isWord(each),
      );
      return areWords && hasLength(places, Uint32Array, count) && highest(places) <= most;
    }
  }
}

function highest(places: Uint32Array): number {
  let most = -1;
  // By index: an iterator is slow until it is compiled, and of a program's first list it would be most of the check.
  for (let i = 0; i < places.length; i += 1) most = Math.max(most, places[i] ?? 0);
  return most;
}

const hasLength = (values: unknown, kind: new () => { length: number }, count: number) =>
  values instanceof kind && values.length === count;

/** The objects; a field that a row does not have is undefined. */
export function unpackRows({ count, columns }: PackedRows): Record<string, unknown>[] {
  // Copied, all rows have one shape. Ten times faster from an object that was parsed: one that grew by one property after
  // the other keeps them outside itself.
  const blank = JSON.parse(
    JSON.stringify(Object.fromEntries(columns.map(({ name }) => [name, null]))),
  ) as Record<string, unknown>;
  for (const { name } of columns) blank[name] = undefined;
  const rows: Record<string, unknown>[] = [];
  for (let i = 0; i < count; i += 1) rows.push({ ...blank });
  for (const column of columns) fill(rows, column);
  return rows;
}

/** Loops by index: those over iterators are slow until they are compiled, and a program's first list is over by then. */
function fill(rows: Record<string, unknown>[], column: PackedColumn): void {
  const { name } = column;
  const count = rows.length;
  const put = (i: number, value: unknown) => {
    const row = rows[i];
    if (row !== undefined) row[name] = value;
  };
  switch (column.kind) {
    case 'words': {
      const { words, places } = column;
      for (let i = 0; i < count; i += 1) put(i, words[places[i] ?? words.length]);
      break;
    }
    case 'numbers': {
      const { values } = column;
      for (let i = 0; i < count; i += 1) {
        const value = values[i];
        if (!Number.isNaN(value)) put(i, value);
      }
      break;
    }
    case 'flags':
      for (let i = 0; i < count; i += 1) put(i, column.values[i] === 1);
      break;
    case 'texts':
      for (let i = 0; i < count; i += 1) put(i, column.values[i]);
  }
}
