import { deserialize, serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { packRows, unpackRows } from '../../main/contract/rows.ts';

const names = ['id', 'status', 'loss', 'isOld', 'tags', 'mixed'];
const there = (rows: object[]) => unpackRows(deserialize(serialize(packRows(rows, names))));

describe('rows as columns', () => {
  it('come back as they were: numbers, texts that repeat or not, absent fields, NaN, lists', () => {
    const rows = Array.from({ length: 300 }, (_, i) => ({
      id: `run ${String(i)}`,
      ...(i % 3 !== 0 && { status: ['done', 'failed', ''][i % 2] }),
      ...(i % 5 !== 0 && { loss: i / 7 - 3 }),
      isOld: i % 2 === 0,
      tags: i % 4 === 0 ? ['a', 'b'] : [],
      ...(i % 6 !== 0 && { mixed: [Number.NaN, 'x', 0, null][i % 4] }),
    }));
    expect(there(rows)).toEqual(rows);
    expect(there(rows)?.map((row) => Object.keys(row).sort())).toEqual(
      rows.map((row) => Object.keys(row).sort()),
    );
    expect(there([])).toEqual([]);
    expect(there([{}])).toEqual([{}]);
  });

  it('are refused where they are something else', () => {
    for (const value of [undefined, null, 3, {}, { count: 2 }, { count: 'x', columns: [] }])
      expect(unpackRows(value)).toBeUndefined();
  });
});
