import { describe, expect, it } from 'vitest';
import { decimate, firstAtLeast, type SeriesColumns } from '../../../renderer/charts/decimate.ts';
import { Random } from '../../../main/core/random.ts';

/** A series of single steps, as an engine tells them. */
function ofValues(values: number[], x = values.map((_, i) => i)): SeriesColumns {
  return {
    ...{ steps: x, x, minimum: values, maximum: values, mean: values },
    numNonFinite: values.map((value) => (Number.isFinite(value) ? 0 : 1)),
  };
}
const whole = (series: SeriesColumns, widthPx: number) => ({
  ...{ widthPx, from: 0 },
  to: series.x[series.x.length - 1] ?? 1,
});
const all = (series: SeriesColumns, widthPx: number) => decimate(series, series.mean, whole(series, widthPx));

describe('what is drawn of a series', () => {
  it('is every point while there is room for each', () => {
    const series = ofValues([3, 1, 4, 1, 5]);
    const drawn = all(series, 100);
    expect(drawn).toMatchObject({ x: [0, 1, 2, 3, 4], value: [3, 1, 4, 1, 5], hasRange: false });
  });
  it('is at most one point a pixel, with the extremes of all it stands for', () => {
    const random = new Random(7);
    for (let round = 0; round < 60; round += 1) {
      const widthPx = 5 + Math.floor(random.uniform() * 80);
      const values = Array.from(
        { length: 3 * widthPx + Math.floor(random.uniform() * 900) },
        () => random.uniform() - 0.5,
      );
      values[Math.floor(random.uniform() * values.length)] = 1000;
      const drawn = all(ofValues(values), widthPx);
      expect(drawn.x.length).toBeLessThanOrEqual(widthPx + 1);
      expect(Math.max(...drawn.maximum)).toBe(1000);
      expect(Math.min(...drawn.minimum)).toBe(Math.min(...values));
      drawn.value.forEach((value, i) => {
        expect(value).toBeGreaterThanOrEqual(drawn.minimum[i]! - 1e-9);
        expect(value).toBeLessThanOrEqual(drawn.maximum[i]! + 1e-9);
      });
      expect([...drawn.x].sort((a, b) => a - b)).toEqual(drawn.x);
    }
  });
  it('keeps what is no number visible: one in a thousand marks its column, and hides no extreme', () => {
    const values = Array.from({ length: 1000 }, (_, i) => i % 10);
    values[500] = Number.NaN;
    values[501] = Infinity;
    const drawn = all(ofValues(values), 100);
    expect(drawn.numNonFinite.reduce((sum, n) => sum + n, 0)).toBe(2);
    const at = drawn.numNonFinite.findIndex((n) => n > 0);
    expect(drawn.x[at]).toBeCloseTo(500, -1);
    expect([drawn.minimum[at], drawn.maximum[at]]).toEqual([2, 9]);
  });
  it('a column of nothing but what is no number is NaN, not zero', () => {
    const drawn = all(ofValues(Array.from({ length: 300 }, () => Number.NaN)), 10);
    expect(drawn.value.every(Number.isNaN)).toBe(true);
    expect(drawn.minimum.every(Number.isNaN)).toBe(true);
    expect(drawn.hasRange).toBe(false);
  });
  it('reaches one point beyond the part in sight on each side, and no further', () => {
    const drawn = decimate(ofValues([0, 1, 2, 3, 4, 5, 6]), [0, 1, 2, 3, 4, 5, 6], {
      ...{ widthPx: 100, from: 2.5 },
      to: 4.5,
    });
    expect(drawn.x).toEqual([2, 3, 4, 5]);
  });
  it('of blocks that came merged keeps the range', () => {
    const series: SeriesColumns = {
      ...{ steps: [8, 24], x: [8, 24], minimum: [1, 2], maximum: [9, 2], mean: [4, 2], numNonFinite: [0, 0] },
    };
    expect(all(series, 100)).toMatchObject({ minimum: [1, 2], maximum: [9, 2], hasRange: true });
  });
  it('is nothing of nothing, and one point of one', () => {
    expect(all(ofValues([]), 100).x).toEqual([]);
    expect(decimate(ofValues([5], [0]), [5], { widthPx: 100, from: 0, to: 0 }).value).toEqual([5]);
  });
});

describe('the first place at least as far', () => {
  it('lies before all, between, and behind all', () => {
    expect([0, 1, 1.5, 4, 9].map((least) => firstAtLeast([1, 2, 4], least))).toEqual([0, 0, 1, 2, 3]);
    expect(firstAtLeast([], 1)).toBe(0);
  });
});
