import { describe, expect, it } from 'vitest';
import { smooth } from '../../../renderer/charts/smooth.ts';

describe('the smoothed line', () => {
  it('is the values themselves without a half-life', () => {
    expect([...smooth([1, 2, 3], [5, 1, 9], 0)]).toEqual([5, 1, 9]);
  });
  it('starts at the first value and stays on a constant', () => {
    expect([...smooth([10, 11, 15, 40], [2, 2, 2, 2], 8)]).toEqual([2, 2, 2, 2]);
  });
  it('halves the weight of a value after one half-life', () => {
    // Four apart: the second weighs 1/2, and so did the first, of which half is left.
    expect(smooth([1, 5], [1, 0], 4)[1]).toBeCloseTo(0.25 / 0.75, 12);
  });
  it('a block of steps counts for as many as it holds', () => {
    // Every step by itself, or one value for eight of them: the line ends at the same place.
    const steps = Array.from({ length: 16 }, (_, i) => i + 1);
    const each = smooth(
      steps,
      steps.map((step) => (step <= 8 ? 1 : 0)),
      4,
    ).at(-1)!;
    const merged = smooth([8, 16], [1, 0], 4).at(-1)!;
    expect(merged).toBeCloseTo(each, 2);
  });
  it('passes over gaps and does not begin before there is a value', () => {
    const line = smooth([1, 2, 3, 4], [Number.NaN, 3, Number.NaN, 3], 2);
    expect(line[0]).toBeNaN();
    expect([line[1], line[2], line[3]]).toEqual([3, 3, 3]);
  });
  it('takes nothing and one value', () => {
    expect(smooth([], [], 4)).toHaveLength(0);
    expect([...smooth([7], [1.5], 4)]).toEqual([1.5]);
  });
});
