import { mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { planPacking } from '../../../main/core/packing/plan.ts';
import { checkPlan, readPlan, writePlan } from '../../../main/core/packing/planFile.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plan-'));
  path = join(folder, 'plan.safetensors');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const lengths = Int32Array.of(7, 5, 3, 12, 1);
const plan = planPacking({ lengths, budget: 10, strategy: 'padded', seed: 3, overlong: 'split' });

test('a plan comes back as it was written and fits its cache', () => {
  writePlan(path, plan, 'abc');
  const { example, start, length, positions, binOffsets } = plan;
  const stored = readPlan(path);
  expect(stored).toEqual({
    ...{ example, start, length, positions, binOffsets },
    ...{ cache: 'abc', strategy: 'padded', budget: 10, seed: 3 },
  });
  checkPlan(path, stored, 'abc', lengths);
});

test('a plan for another cache is refused', () => {
  writePlan(path, plan, 'abc');
  const stored = readPlan(path);
  expect(() => checkPlan(path, stored, 'xyz', lengths)).toThrow(/made for the token cache abc, not for xyz/);
  expect(() => checkPlan(path, stored, 'abc', lengths.subarray(0, 3))).toThrow(
    /example 3, but the cache has 3 examples/,
  );
  expect(() => checkPlan(path, stored, 'abc', Int32Array.of(7, 5, 3, 11, 1))).toThrow(
    /of example 3, but it has 11 tokens/,
  );
});

test('a plan cut short is refused', () => {
  writePlan(path, plan, 'abc');
  truncateSync(path, readFileSync(path).length - 8);
  expect(() => readPlan(path)).toThrow(/its header describes/);
});

test.each([
  [
    'bins that do not end at the placements',
    { binOffsets: Int32Array.of(0, 2) },
    /'bin_offsets' runs from 0 to 2, not from 0 to 6/,
  ],
  ['an empty bin', { binOffsets: Int32Array.of(0, 1, 1, 6) }, /bin 1 runs from placement 1 to 1/],
  ['a bin that falls', { binOffsets: Int32Array.of(0, 1, 0, 6) }, /bin 1 runs from placement 1 to 0/],
  [
    'a bin over its budget',
    { binOffsets: Int32Array.of(0, 6) },
    /bin 0 holds \d+ positions, its budget is 10/,
  ],
  ['a missing length', { length: plan.length.subarray(1) }, /'length' has 5 entries, 'example' has 6/],
  ['a placement of nothing', { length: new Int32Array(6) }, /placement 0 has 0 tokens/],
])('%s is refused', (_what, change, message) => {
  writePlan(path, { ...plan, ...change }, 'abc');
  expect(() => readPlan(path)).toThrow(message);
});
