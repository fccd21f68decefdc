import { expect, it } from 'vitest';
import {
  flagColumn,
  numberColumn,
  textColumn,
  unpackRows,
  wordColumn,
  type PackedRows,
} from '../../../main/contract/rows.ts';
import { joinRows, pickRows } from '../../../main/core/runs/pickRows.ts';

type Row = [string, string | null, number | null, number | null, string];
const pack = (rows: Row[]): PackedRows => ({
  count: rows.length,
  columns: [
    textColumn('id', rows, 0),
    wordColumn('why', rows, 1),
    numberColumn('loss', rows, 2),
    flagColumn('isOld', rows, 3),
    wordColumn('tags', rows, 4, (list) => JSON.parse(list) as string[]),
  ],
});
const first: Row[] = [
  ['a', null, 1.5, null, '[]'],
  ['b', 'full', null, 1, '["x","y"]'],
  ['c', 'lost', -0.25, null, '["x"]'],
];
const second: Row[] = [
  ['d', 'lost', Infinity, 1, '["z"]'],
  ['e', null, 0, null, '["x","y"]'],
  ['f', '', null, null, '[]'],
];

it('joins and picks rows as if they had been packed so', () => {
  const all = [...first, ...second];
  const joined = joinRows(pack(first), pack(second));
  expect(unpackRows(joined)).toEqual(unpackRows(pack(all)));
  for (const places of [[], [4], [5, 0, 3], [0, 1, 2, 3, 4, 5], [2, 2]]) {
    const picked = pickRows(joined, places);
    const alone = pack(places.map((place) => all[place] as Row));
    expect(unpackRows(picked)).toEqual(unpackRows(alone));
    // Nothing travels that no row has.
    expect(picked).toEqual(alone);
  }
});

it('joins with nothing on either side', () => {
  expect(unpackRows(joinRows(pack([]), pack(first)))).toEqual(unpackRows(pack(first)));
  expect(unpackRows(joinRows(pack(first), pack([])))).toEqual(unpackRows(pack(first)));
});
