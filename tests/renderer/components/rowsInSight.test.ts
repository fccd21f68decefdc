import { describe, expect, it } from 'vitest';
import { rowsInSight, scrollFor } from '../../../renderer/components/rowsInSight.ts';

const sight = (count: number, scrollTop: number) => ({
  ...{ count, rowHeight: 24, viewHeight: 600, overscan: 4, scrollTop },
});

describe('rows in sight', () => {
  it('are those of the view and a few on either side, at their places', () => {
    const { height, rows } = rowsInSight(sight(200_000, 24_000));
    expect(height).toBe(4_800_000);
    expect(rows[0]).toEqual({ index: 996, top: 996 * 24 });
    expect(rows.at(-1)).toEqual({ index: 1028, top: 1028 * 24 });
  });

  it('end with the list', () => {
    expect(rowsInSight(sight(0, 0)).rows).toEqual([]);
    expect(rowsInSight(sight(3, 0)).rows.map(({ index }) => index)).toEqual([0, 1, 2]);
    // A list that has become shorter than where it was scrolled to.
    expect(rowsInSight(sight(3, 10_000)).rows).toEqual([]);
  });

  it('reach the last of a hundred million, all of them within what scrolls', () => {
    const { height, rows } = rowsInSight(sight(100_000_000, 15_000_000 - 600));
    expect(height).toBe(15_000_000);
    expect(rows.at(-1)?.index).toBe(99_999_999);
    expect(rows.at(-1)?.top).toBeCloseTo(15_000_000 - 24, 3);
  });

  it.each([0, 7, 12_345_678, 99_999_999])('any row of a hundred million is a jump away: %i', (index) => {
    const before = sight(100_000_000, 3_000);
    const scrollTop = Math.round(scrollFor(before, index, 'center'));
    const { rows } = rowsInSight({
      ...before,
      overscan: 0,
      scrollTop: Math.min(scrollTop, 15_000_000 - 600),
    });
    expect(rows.map((row) => row.index)).toContain(index);
  });

  it('move no further than needed for one at the edge', () => {
    expect(scrollFor(sight(1000, 2400), 110, 'nearest')).toBe(2400);
    expect(scrollFor(sight(1000, 2400), 99, 'nearest')).toBe(99 * 24);
    expect(scrollFor(sight(1000, 2400), 125, 'nearest')).toBe(126 * 24 - 600);
  });
});
