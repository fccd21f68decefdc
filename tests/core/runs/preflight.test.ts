import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { checkRecipe } from '../../../main/core/runs/recipe.ts';
import { judge } from '../../../main/core/runs/preflight.ts';

const machine = { protocol: 1, version: '', backends: [], devices: [], kernels: [], libraries: {}, gpus: [] };

/** What preflight says of the disk, for checkpoints of which `numFree` would still find room. */
function diskItem(numFree: number, keep = 2) {
  const { bavail, bsize } = statfsSync(tmpdir());
  const { items, ok } = judge({
    recipe: checkRecipe({ model: '/m', dataset: 'd', checkpoint: { keep } }),
    ...{ machine, device: 'cpu', folder: tmpdir(), proofs: undefined, cost: undefined, memory: { total: 1 } },
    plan: new Error('not of interest'),
    checkpointBytes: (bavail * bsize) / numFree,
  });
  return { ok, ...items.find(({ name }) => name === 'disk') };
}

it('wants room for the checkpoints that are kept and the next one, and stops where not even two have any', () => {
  expect(diskItem(1000)).toMatchObject({
    status: 'pass',
    message: expect.stringContaining(tmpdir()) as string,
  });
  expect(diskItem(2.5)).toMatchObject({
    status: 'warn',
    hint: expect.stringContaining('are skipped') as string,
  });
  expect(diskItem(2.5, 1).status).toBe('pass');
  expect(diskItem(1.5)).toMatchObject({
    status: 'stop',
    hint: expect.stringMatching(
      /^Free some space, lower checkpoint.keep, or choose another --home/,
    ) as string,
  });
});
