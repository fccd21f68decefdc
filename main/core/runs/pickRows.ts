import type { PackedColumn, PackedRows } from '../../contract/rows.ts';

type WordColumn = Extract<PackedColumn, { kind: 'words' }>;

/** The rows at these places, in this order. Words that none of them has are left out. */
export function pickRows({ columns }: PackedRows, places: readonly number[]): PackedRows {
  return { count: places.length, columns: columns.map((column) => pickColumn(column, places)) };
}

/** The rows of both, of the same fields, one after the other. */
export function joinRows(a: PackedRows, b: PackedRows): PackedRows {
  const others = new Map(b.columns.map((column) => [column.name, column]));
  return {
    count: a.count + b.count,
    columns: a.columns.map((column) => joinColumns(column, others.get(column.name))),
  };
}

function pickColumn(column: PackedColumn, places: readonly number[]): PackedColumn {
  switch (column.kind) {
    case 'numbers':
      return { ...column, values: gather(column.values, places, new Float64Array(places.length)) };
    case 'flags':
      return { ...column, values: gather(column.values, places, new Uint8Array(places.length)) };
    case 'texts':
      return { ...column, values: places.map((place) => column.values[place] ?? '') };
    case 'words':
      return pickWords(column, places);
  }
}

function gather<T extends Float64Array | Uint8Array>(from: T, places: readonly number[], into: T): T {
  for (let i = 0; i < into.length; i += 1) into[i] = from[places[i] ?? 0] ?? 0;
  return into;
}

function pickWords(column: WordColumn, chosen: readonly number[]): WordColumn {
  const absent = column.words.length;
  const renamed = new Int32Array(absent).fill(-1);
  const words: WordColumn['words'] = [];
  const places = new Uint32Array(chosen.length);
  const without: number[] = [];
  for (let i = 0; i < places.length; i += 1) {
    const old = column.places[chosen[i] ?? 0] ?? absent;
    const word = column.words[old];
    if (word === undefined) without.push(i);
    else {
      if (renamed[old] === -1) renamed[old] = words.push(word) - 1;
      places[i] = renamed[old] ?? 0;
    }
  }
  for (const i of without) places[i] = words.length;
  return { ...column, words, places };
}

function joinColumns(a: PackedColumn, b: PackedColumn | undefined): PackedColumn {
  if (a.kind === 'numbers' && b?.kind === 'numbers') {
    const values = new Float64Array(a.values.length + b.values.length);
    values.set(a.values);
    values.set(b.values, a.values.length);
    return { ...a, values };
  }
  if (a.kind === 'flags' && b?.kind === 'flags')
    return { ...a, values: Uint8Array.from([...a.values, ...b.values]) };
  if (a.kind === 'texts' && b?.kind === 'texts') return { ...a, values: [...a.values, ...b.values] };
  if (a.kind === 'words' && b?.kind === 'words') return joinWords(a, b);
  throw new Error(`columns '${a.name}' of two kinds`);
}

/** A list of words is told apart by what stands in it. */
const keyOf = (word: string | string[]) => (typeof word === 'string' ? word : JSON.stringify(word));

function joinWords(a: WordColumn, b: WordColumn): WordColumn {
  const words = [...a.words];
  const known = new Map(words.map((word, place) => [keyOf(word), place]));
  const renamed = b.words.map((word) => known.get(keyOf(word)) ?? words.push(word) - 1);
  const places = new Uint32Array(a.places.length + b.places.length);
  // What neither had is one past the words of both now.
  a.places.forEach((place, i) => (places[i] = place === a.words.length ? words.length : place));
  b.places.forEach((place, i) => (places[a.places.length + i] = renamed[place] ?? words.length));
  return { ...a, words, places };
}
