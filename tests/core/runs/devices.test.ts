import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { rankDevices } from '../../../main/contract/device.ts';
import { TesseraError } from '../../../main/contract/errors.ts';
import { chooseDevice, type Machine } from '../../../main/core/engine/machine.ts';
import { judge, type PreflightFacts } from '../../../main/core/runs/preflight.ts';
import { checkRecipe } from '../../../main/core/runs/recipe.ts';

const unserved = 'the model has head_dim 32; the fast CUDA kernels serve head_dim 256';
const cpu = { device: 'cpu' };
const machine = (...devices: Machine['devices']): Machine => ({
  ...{ protocol: 1, version: '', devices: [cpu, ...devices] },
  ...{ backends: ['cpu', 'cuda'], libraries: {}, kernels: [], gpus: [] },
});
const served = machine({ device: 'cuda:0' });
const refused = machine({ device: 'cuda:0', unserved });

describe('device: auto', () => {
  it('takes the first GPU whose fast kernels serve the model, else the CPU', () => {
    expect(chooseDevice(served, 'auto')).toBe('cuda:0');
    expect(chooseDevice(refused, 'auto')).toBe('cpu');
    expect(chooseDevice(machine({ device: 'cuda:0', unserved }, { device: 'cuda:1' }), 'auto')).toBe(
      'cuda:1',
    );
    expect(chooseDevice(machine(), 'auto')).toBe('cpu');
    expect(chooseDevice(refused, 'cuda:0')).toBe('cuda:0');
  });
});

describe('several devices', () => {
  it('are one rank each', () => {
    expect(rankDevices('cuda:0,2')).toEqual(['cuda:0', 'cuda:2']);
    expect(rankDevices('cpu:0,1')).toEqual(['cpu', 'cpu']);
    for (const device of ['auto', 'cpu', 'cuda:1']) expect(rankDevices(device)).toEqual([device]);
  });

  it('are named once', () => {
    const check = (device: string) => checkRecipe({ model: 'm', dataset: 'd', device }).device;
    expect(check('cpu:0,1')).toBe('cpu:0,1');
    for (const device of ['cuda:0,0', 'cpu:0', 'cuda:0,', 'gpu'])
      expect(() => check(device)).toThrow('device');
  });
});

describe('the kernels of a preflight', () => {
  const judged = (on: Machine, device: string, settings: object = {}, memory?: Error) => {
    const facts: PreflightFacts = {
      ...{ recipe: checkRecipe({ model: 'm', dataset: 'd', ...settings }), machine: on, device },
      ...{ plan: new Error('none'), memory: memory ?? {}, proofs: undefined, cost: undefined },
      ...{ checkpointBytes: 1, folder: tmpdir() },
    };
    return (name: string) => judge(facts).items.find((item) => item.name === name);
  };

  it('pass where they are fast, and say which GPU auto left out, and why', () => {
    expect(judged(served, 'cuda:0')('kernels')).toMatchObject({ status: 'pass' });
    expect(judged(refused, 'cpu')('kernels')).toMatchObject({
      status: 'pass',
      message: expect.stringContaining(`cuda:0 is left out: ${unserved}`) as string,
    });
    expect(judged(refused, 'cpu', { device: 'cpu' })('kernels')?.message).not.toContain('left out');
  });

  it('stop a run that would be slow, once, until that is accepted', () => {
    const refusal = new TesseraError('unsupported_head_size', `cuda:0: ${unserved}`);
    const item = judged(refused, 'cuda:0', { device: 'cuda:0' }, refusal);
    expect(item('kernels')).toMatchObject({
      status: 'stop',
      message: expect.stringContaining(unserved) as string,
    });
    expect(item('memory')?.status).toBe('warn');
    const accepted = judged(refused, 'cuda:0', { device: 'cuda:0', acceptSlow: true });
    expect(accepted('kernels')).toMatchObject({ status: 'warn', hint: 'Accepted by acceptSlow.' });
  });

  it('stop for a GPU of several that is not here, and say how ranks share a run', () => {
    expect(judged(served, 'cuda:0,1')('kernels')).toMatchObject({
      status: 'stop',
      message: 'there is no device cuda:1 here',
    });
    const two = machine({ device: 'cuda:0' }, { device: 'cuda:1' });
    expect(judged(two, 'cuda:0,1')('kernels')?.status).toBe('pass');
    expect(judged(two, 'cuda:0,1', { gradAccumulation: 3 })('ranks')?.message).toMatch(
      /^2 ranks, 3 bins each a step, joined by NCCL/,
    );
    expect(judged(machine(), 'cpu:0,1')('kernels')?.status).toBe('pass');
    expect(judged(machine(), 'cpu')('ranks')).toBeUndefined();
  });

  it('count those of the device alone, and the plain ones that a recipe asks for', () => {
    const names = { layerKind: 'mlp', operation: 'linear', forward: 'linear_fwd', backward: 'linear_bwd' };
    const slow = { ...names, tier: 'reference', reason: 'no cuBLASLt', slow: true };
    expect(judged({ ...served, kernels: [{ ...slow, device: 'cuda:1' }] }, 'cuda:0')('kernels')?.status).toBe(
      'pass',
    );
    expect(
      judged({ ...served, kernels: [{ ...slow, device: 'cuda:0' }] }, 'cuda:0')('kernels'),
    ).toMatchObject({
      status: 'stop',
      message: expect.stringContaining('linear (no cuBLASLt)') as string,
    });
    for (const settings of [{ kernels: 'reference' }, { precision: 'fp32' }])
      expect(judged(served, 'cuda:0', settings)('kernels')?.status).toBe('stop');
  });
});
