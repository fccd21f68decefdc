import { expect, test } from 'vitest';
import { sparkPath } from '../../../renderer/charts/sparkPath.ts';

test('the largest value lies at the top, gaps are left out, one value is no line', () => {
  expect(sparkPath([1, Number.NaN, 3, 2], 80, 16)).toBe('M0.0 14.5L40.0 1.5L80.0 8.0');
  expect(sparkPath([5, 5], 80, 16)).toBe('M0.0 14.5L80.0 14.5');
  expect(sparkPath([1], 80, 16)).toBe('');
});
