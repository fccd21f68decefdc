import { describe, expect, it } from 'vitest';
import { binaryAxis } from '../../../renderer/charts/binaryAxis.ts';

const gib = 2 ** 30;
const ticks = ({ min, max, interval, write }: ReturnType<typeof binaryAxis>) =>
  Array.from({ length: Math.round((max - min) / interval) + 1 }, (_, i) => write(min + i * interval));

describe('an axis of bytes', () => {
  it('has round steps in its own unit, each with its own words', () => {
    expect(ticks(binaryAxis(0.9 * gib, 4.7 * gib))).toEqual(['0 GiB', '2 GiB', '4 GiB', '6 GiB']);
    expect(ticks(binaryAxis(58.83 * gib, 58.98 * gib))).toEqual([
      '58.80 GiB',
      '58.85 GiB',
      '58.90 GiB',
      '58.95 GiB',
      '59.00 GiB',
    ]);
    expect(ticks(binaryAxis(0, 700))).toEqual(['0 B', '500 B', '1000 B']);
  });
  it('stands around a value that never changes, and around nothing', () => {
    for (const value of [0, 1, 3 * gib]) {
      const { min, max, interval } = binaryAxis(value, value);
      expect(min).toBeLessThanOrEqual(value);
      expect(max).toBeGreaterThan(min);
      expect(interval).toBeGreaterThan(0);
      expect(max).toBeGreaterThanOrEqual(value);
    }
  });
  it('holds all that it was made for, in few steps that read differently', () => {
    for (let i = 1; i < 400; i += 1) {
      const lowest = (i * 7919 * 104_729) % 1e12;
      const highest = lowest + 1.37 ** (i % 80) + 1;
      const axis = binaryAxis(lowest, highest);
      expect(axis.min).toBeLessThanOrEqual(lowest);
      expect(axis.max).toBeGreaterThanOrEqual(highest);
      const words = ticks(axis);
      expect(words.length).toBeLessThanOrEqual(6);
      expect(new Set(words).size).toBe(words.length);
    }
  });
});
