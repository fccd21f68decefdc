import { expect, test } from 'vitest';
import { shortCell } from '../../../renderer/views/compare/figures.ts';

test('a path is told by its end, all else as it is', () => {
  expect(shortCell('/home/me/sets/support-v3.jsonl')).toBe('…/support-v3.jsonl');
  expect(shortCell('C:\\sets\\support.jsonl')).toBe('…/support.jsonl');
  expect(['support-649d', 'a/b', 0.1 + 0.2, undefined].map(shortCell)).toEqual([
    'support-649d',
    'a/b',
    '0.3',
    '–',
  ]);
});
