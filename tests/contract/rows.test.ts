import { deserialize, serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import {
  flagColumn,
  isPacked,
  numberColumn,
  textColumn,
  unpackRows,
  wordColumn,
  type FieldKind,
  type PackedRows,
} from '../../main/contract/rows.ts';

const field = (name: string, kind: FieldKind['kind'], rest: Partial<FieldKind> = {}): FieldKind => ({
  ...{ name, kind, isList: false, isOptional: false },
  ...rest,
});
const fields = [
  field('id', 'texts'),
  field('status', 'words', { choices: ['done', 'failed'] }),
  field('why', 'words', { isOptional: true }),
  field('steps', 'numbers'),
  field('loss', 'numbers', { isOptional: true }),
  field('isOld', 'flags'),
  field('tags', 'words', { isList: true }),
];
const rows = [
  ['a', 'done', null, 0, null, 1, '[]'],
  ['b', 'failed', '', -0.5, 1 / 3, null, '["x","y"]'],
  ['c', 'done', 'out of memory', 7, Infinity, 0, '[]'],
];
const packed = (): PackedRows => ({
  count: 3,
  columns: [
    textColumn('id', rows, 0),
    wordColumn('status', rows, 1),
    wordColumn('why', rows, 2),
    numberColumn('steps', rows, 3),
    numberColumn('loss', rows, 4),
    flagColumn('isOld', rows, 5),
    wordColumn('tags', rows, 6, (list) => JSON.parse(list) as string[]),
  ],
});
/** One column as it would be with other cells in it. */
const cells = (...values: (string | number | null)[]) => values.map((value) => [value]);

describe('rows as columns', () => {
  it('come back as they were: numbers, texts, absent fields, lists', () => {
    const there: unknown = deserialize(serialize(packed()));
    expect(isPacked(there, fields)).toBe(true);
    expect(unpackRows(there as PackedRows)).toEqual([
      { id: 'a', status: 'done', steps: 0, isOld: true, tags: [] },
      { id: 'b', status: 'failed', why: '', steps: -0.5, loss: 1 / 3, isOld: false, tags: ['x', 'y'] },
      { id: 'c', status: 'done', why: 'out of memory', steps: 7, loss: Infinity, isOld: true, tags: [] },
    ]);
    expect(unpackRows({ count: 0, columns: [] })).toEqual([]);
  });

  it.each<[string, (all: PackedRows) => unknown]>([
    ['nothing', () => undefined],
    ['a number', () => 3],
    ['no columns', () => ({ count: 2 })],
    ['a count that is none', (all) => ({ ...all, count: 'x' })],
    ['columns of another length', (all) => ({ ...all, count: 2 })],
    ['a column too few', (all) => ({ ...all, columns: all.columns.slice(1) })],
    [
      'a field that nobody knows',
      (all) => ({ ...all, columns: [...all.columns, flagColumn('x', cells(1, 1, 1), 0)] }),
    ],
    [
      'a word that is no choice',
      (all) => replace(all, wordColumn('status', cells('done', 'odd', 'done'), 0)),
    ],
    ['a word too few', (all) => replace(all, wordColumn('status', cells('done', null, 'done'), 0))],
    ['a number too few', (all) => replace(all, numberColumn('steps', cells(0, null, 1), 0))],
    ['numbers for texts', (all) => replace(all, numberColumn('id', cells(0, 1, 2), 0))],
    ['words for lists', (all) => replace(all, wordColumn('tags', cells('a', 'b', 'c'), 0))],
  ])('are refused where they are something else: %s', (_what, spoil) => {
    expect(isPacked(spoil(packed()), fields)).toBe(false);
  });
});

function replace(all: PackedRows, column: PackedRows['columns'][number]): PackedRows {
  return { ...all, columns: all.columns.map((each) => (each.name === column.name ? column : each)) };
}
