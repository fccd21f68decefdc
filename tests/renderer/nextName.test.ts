import { expect, test } from 'vitest';
import { nextName } from '../../renderer/nextName.ts';

test('the next name counts on from the number that a name ends with, past those that are taken', () => {
  expect(nextName('desk', new Set(['desk']))).toBe('desk 2');
  expect(nextName('desk 4', new Set(['desk 4', 'desk 5']))).toBe('desk 6');
  expect(nextName('lr 0.002', new Set())).toBe('lr 0.002 2');
  expect(nextName('7', new Set())).toBe('7 2');
});
