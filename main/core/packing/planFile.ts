import { TesseraError } from '../../contract/errors.ts';
import { SafetensorsError, withSafetensors, writeSafetensors, type TensorData } from '../safetensors.ts';
import type { Plan } from './plan.ts';

/** What a plan file says of itself besides its tensors; `cache` is the content hash of the token cache it is for. */
interface PlanLabel {
  cache: string;
  strategy: string;
  budget: number;
  seed: number;
}

export type StoredPlan = Pick<Plan, 'example' | 'start' | 'length' | 'positions' | 'binOffsets'> & PlanLabel;

/**
 * Writes a plan for the engine: `example` I32, `start` I64, `length` I32 (and `positions` I32 where a placement is
 * computed longer than it is), one entry a placement; `bin_offsets` I64 [bins + 1].
 */
export function writePlan(path: string, plan: Omit<StoredPlan, 'cache'>, cache: string): void {
  const tensors: Record<string, TensorData> = {
    example: { dtype: 'I32', data: plan.example },
    start: { dtype: 'I64', data: BigInt64Array.from(plan.start, BigInt) },
    length: { dtype: 'I32', data: plan.length },
    bin_offsets: { dtype: 'I64', data: BigInt64Array.from(plan.binOffsets, BigInt) },
  };
  if (plan.positions) tensors['positions'] = { dtype: 'I32', data: plan.positions };
  const { strategy, budget, seed } = plan;
  writeSafetensors(path, tensors, { cache, strategy, budget: String(budget), seed: String(seed) });
}

/** Reads a plan back and checks it in itself; `checkPlan` checks it against the examples. */
export function readPlan(path: string): StoredPlan {
  return withSafetensors(path, (file) => {
    const plan: StoredPlan = {
      example: file.read('example', 'I32'),
      start: Int32Array.from(file.read('start', 'I64'), Number),
      length: file.read('length', 'I32'),
      ...(file.tensors.has('positions') && { positions: file.read('positions', 'I32') }),
      binOffsets: Int32Array.from(file.read('bin_offsets', 'I64'), Number),
      cache: file.metadata['cache'] ?? '',
      strategy: file.metadata['strategy'] ?? '',
      budget: Number(file.metadata['budget']),
      seed: Number(file.metadata['seed']),
    };
    const { length } = plan.example;
    for (const name of ['start', 'length', 'positions'] as const) {
      if ((plan[name]?.length ?? length) !== length) {
        throw new SafetensorsError(
          path,
          `'${name}' has ${plan[name]?.length} entries, 'example' has ${length}`,
        );
      }
    }
    checkBins(path, plan);
    return plan;
  });
}

/**
 * Refuses a plan that does not fit a cache: another cache's hash, an example that is not there, a part beyond its
 * example's end. `lengths` are the cache's examples in tokens.
 */
export function checkPlan(path: string, plan: StoredPlan, cache: string, lengths: Int32Array): void {
  if (plan.cache !== cache) {
    throw new TesseraError(
      'planOfAnotherCache',
      `${path} was made for the token cache ${plan.cache || '(unnamed)'}, not for ${cache}`,
      'Pack the dataset again.',
    );
  }
  plan.example.forEach((example, i) => {
    const [start, length] = [plan.start[i] as number, plan.length[i] as number];
    const size = lengths[example];
    if (size === undefined || start < 0 || start + length > size) {
      const found = size === undefined ? `the cache has ${lengths.length} examples` : `it has ${size} tokens`;
      throw new SafetensorsError(
        path,
        `placement ${i} wants tokens ${start} … ${start + length} of example ${example}, but ${found}`,
      );
    }
  });
}

function checkBins(path: string, { binOffsets, length, positions, budget }: StoredPlan): void {
  const last = binOffsets.at(-1);
  if (binOffsets[0] !== 0 || last !== length.length) {
    throw new SafetensorsError(
      path,
      `'bin_offsets' runs from ${binOffsets[0]} to ${last}, not from 0 to ${length.length}`,
    );
  }
  for (let bin = 0; bin + 1 < binOffsets.length; bin++) {
    const [from, to] = [binOffsets[bin] as number, binOffsets[bin + 1] as number];
    if (from >= to) throw new SafetensorsError(path, `bin ${bin} runs from placement ${from} to ${to}`);
    let used = 0;
    for (let i = from; i < to; i++) {
      const [real, computed] = [length[i] as number, (positions ?? length)[i] as number];
      if (real < 1 || computed < real) {
        throw new SafetensorsError(path, `placement ${i} has ${real} tokens in ${computed} positions`);
      }
      used += computed;
    }
    if (used > budget)
      throw new SafetensorsError(path, `bin ${bin} holds ${used} positions, its budget is ${budget}`);
  }
}
