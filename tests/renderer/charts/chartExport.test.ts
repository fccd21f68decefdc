import { describe, expect, it } from 'vitest';
import { toCsv, toJson } from '../../../renderer/charts/chartExport.ts';

const table = {
  columns: ['run', 'loss'],
  rows: [
    ['a, "b"', 1.5],
    ['=SUM(A1)', Number.NaN],
    ['c', null],
  ] as (string | number | null)[][],
};

describe('the numbers behind a chart', () => {
  it('are CSV that a spreadsheet reads, and runs nothing', () => {
    expect(toCsv(table)).toBe('run,loss\r\n"a, ""b""",1.5\r\n\'=SUM(A1),\r\nc,\r\n');
  });

  it('are JSON with gaps as null', () => {
    expect(JSON.parse(toJson(table))).toEqual([
      { run: 'a, "b"', loss: 1.5 },
      { run: '=SUM(A1)', loss: null },
      { run: 'c', loss: null },
    ]);
  });
});
