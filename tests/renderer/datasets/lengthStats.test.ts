import { describe, expect, it } from 'vitest';
import {
  beyond,
  binLengths,
  binShares,
  lengthRange,
  percentile,
  statsOf,
  tokenShare,
} from '../../../renderer/views/datasets/lengthStats.ts';

const lengths = Int32Array.from([10, 100, 40, 1000, 10]);
const supervised = Int32Array.from([5, 20, 40, 900, 0]);
const stats = statsOf(lengths);

describe('lengths', () => {
  it('have percentiles by nearest rank', () => {
    expect([0, 0.5, 0.8, 0.99, 1].map((share) => percentile(stats, share))).toEqual([
      10, 40, 100, 1000, 1000,
    ]);
    expect(stats.mean).toBe(232);
  });

  it('tell what lies beyond a budget, counted one by one', () => {
    for (const budget of [1, 9, 10, 11, 99, 100, 999, 1000, 5000]) {
      const longer = Array.from(lengths).filter((length) => length > budget);
      const tokens = longer.reduce((sum, length) => sum + length - budget, 0);
      expect(beyond(stats, budget)).toEqual({ examples: longer.length, tokens });
    }
  });

  it('tell where the tokens are', () => {
    expect(tokenShare(stats, 9)).toBe(0);
    expect(tokenShare(stats, 100)).toBeCloseTo(160 / 1160);
    expect(tokenShare(stats, 1000)).toBe(1);
  });

  it('fall each into one bin of the axis', () => {
    const range = lengthRange(stats);
    expect(range).toEqual([8, 2048]);
    const bins = binLengths(lengths, supervised, range, 72);
    expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(5);
    expect(bins.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(1160);
    expect(bins.reduce((sum, bin) => sum + bin.supervised, 0)).toBe(965);
    for (const { from, to, count, tokens } of bins)
      if (count > 0) expect(tokens / count >= from && tokens / count < to).toBe(true);
  });

  it('are counted by their share of learned tokens', () => {
    const counts = binShares(lengths, supervised);
    expect([counts[10], counts[4], counts[19], counts[18], counts[0]]).toEqual([1, 1, 1, 1, 1]);
  });

  it('may be none at all', () => {
    const none = statsOf(new Int32Array(0));
    expect(percentile(none, 0.5)).toBe(0);
    expect(beyond(none, 10)).toEqual({ examples: 0, tokens: 0 });
    expect(tokenShare(none, 10)).toBe(0);
  });
});
