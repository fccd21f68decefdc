import { expect, it } from 'vitest';
import { createCrashWatch } from '../../../main/gpu/crashWatch.ts';

it('one death in a while is forgiven, two in a minute are not', () => {
  const isLosing = createCrashWatch();
  expect(isLosing(0)).toBe(false);
  expect(isLosing(61_000)).toBe(false);
  expect(isLosing(100_000)).toBe(true);
});
