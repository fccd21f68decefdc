import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { TesseraError } from '../../../main/contract/errors.ts';
import { planRun } from '../../../main/core/runs/planRun.ts';
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
    hint: expect.stringMatching(/^Free some space, lower checkpoint.keep, or choose another home/) as string,
  });
});

/** The preflight of a run of three steps on 40 chats, `needs` bytes of memory. */
function judged(
  settings: object,
  { needs = 1, fits, ...more }: { needs?: number; fits?: string; ranksThatWouldDo?: number } = {},
) {
  const recipe = checkRecipe({ model: '/m', dataset: 'd', steps: 3, packing: { budget: 128 }, ...settings });
  const lengths = new Int32Array(40).fill(20);
  const source = { folder: '/cache', key: 'k', datasetHash: 'd', lengths };
  const { items } = judge({
    ...{ recipe, machine, device: 'cpu', folder: tmpdir(), fits, ...more },
    ...{ memory: { total: needs }, cost: new Error('the engine has levers of its own'), checkpointBytes: 1 },
    proofs: new TesseraError('out_of_memory', 'it does not fit', 'the levers again'),
    plan: planRun(recipe, { ...source, firstTarget: lengths.map(() => 2), isText: new Uint8Array(40) }),
  });
  return (name: string) => items.find((item) => item.name === name);
}

it('warns of a learning rate that moves no weight, and of a warm-up that takes the whole run', () => {
  const rate = (settings: object) => judged(settings)('learning rate');
  const warned = (message: string, hint: string) => ({
    status: 'warn',
    message: expect.stringContaining(message) as string,
    hint: expect.stringContaining(hint) as string,
  });
  expect(rate({ optimizer: { lr: 0, weightDecay: 0.1 } })).toMatchObject(
    warned('no weight changes', 'Raise optimizer.lr'),
  );
  // Nothing in fp32, with which the engine computes.
  expect(rate({ optimizer: { lr: 1e-50 } })).toMatchObject(warned('no weight changes', 'optimizer.lr'));
  expect(rate({ optimizer: { lr: 1e-4 }, schedule: { warmupSteps: 6 } })).toMatchObject(
    warned('the warm-up of 6 steps takes the whole run: it ends at 5e-5 of 1e-4', 'schedule.warmupSteps'),
  );
  expect(rate({ schedule: { warmupSteps: 3 } })?.status).toBe('warn');
  expect(rate({ schedule: { warmupSteps: 1, minLr: 1e-6 } })).toMatchObject({
    status: 'pass',
    message: '2e-5, after 1 step of warm-up, cosine to 1e-6',
  });
});

it('names what is asked for at steps that never come, with the way out', () => {
  const past = { profileAtStep: 4, checkpoint: { everySteps: 1000 }, evaluate: { everySteps: 4 } };
  const steps = judged({ ...past, evalShare: 0.2 })('steps');
  expect(steps).toMatchObject({
    status: 'warn',
    hint: 'Lower profileAtStep, checkpoint.everySteps and evaluate.everySteps, or train for more steps.',
  });
  expect(steps?.message).toContain('checkpoint.everySteps 1,000 is past the end');
  const last = { profileAtStep: 3, checkpoint: { everySteps: 3 }, evaluate: { everySteps: 3 } };
  expect(judged({ ...last, evalShare: 0.2 })('steps')?.status).toBe('pass');
  // Without a held-out loss it is that which is missing.
  const nothing = judged({ evaluate: { everySteps: 9 }, checkpoint: { best: true } });
  expect(nothing('steps')?.status).toBe('pass');
  expect(nothing('evaluation')?.message).toBe(
    'nothing is held out: evaluate.everySteps and checkpoint.best will do nothing',
  );
});

it('says the way out of too little memory once', () => {
  const item = judged({}, { needs: 2 ** 60, fits: 'recompute: full' });
  expect(item('memory')).toMatchObject({ status: 'stop', hint: 'It fits with recompute: full.' });
  expect(item('time')).toEqual({
    ...{ name: 'time', status: 'warn' },
    message: 'not known before it fits into memory',
  });
  expect(item('isolation')).toEqual({ ...item('time'), name: 'isolation' });
  expect(judged({})('time')?.message).toContain('levers of its own');
});

it('says how many GPUs would do where one does not', () => {
  const hint = (more: object) => judged({}, { needs: 2 ** 60, ...more })('memory')?.hint;
  expect(hint({})).toBe('No recipe lets this model fit: take a smaller one, or a device with more memory.');
  const two = '2 GPUs with as much memory (device: cuda:0,1,…) would do';
  expect(hint({ ranksThatWouldDo: 2 })).toBe(`No recipe lets this model fit here: ${two}.`);
  expect(hint({ ranksThatWouldDo: 2, fits: 'recompute: full' })).toBe(
    `It fits with recompute: full; or ${two}.`,
  );
});
