import { z } from 'zod';
import { rankDevices } from '../../contract/device.ts';
import { askEngine } from './askEngine.ts';
import { protocolMismatch } from './mismatch.ts';
import { protocolVersion } from './protocol.ts';

const kernel = z.looseObject({
  layerKind: z.string().default(''),
  operation: z.string(),
  forward: z.string().default(''),
  backward: z.string().default(''),
  tier: z.string().default(''),
  reason: z.string().default(''),
  slow: z.boolean().default(false),
  device: z.string().optional(),
});

const device = z.looseObject({
  /** `cpu`, `cuda:0`, … */
  device: z.string(),
  name: z.string().optional(),
  memoryBytes: z.number().optional(),
  freeBytes: z.number().optional(),
  /** Why its fast kernels do not serve the model that was asked about. */
  unserved: z.string().optional(),
});

const hello = z.looseObject({
  protocol: z.int(),
  version: z.string(),
  devices: z.array(device),
  backends: z.array(z.string()).default(['cpu']),
  libraries: z.record(z.string(), z.unknown()).default({}),
  kernels: z.array(kernel).default([]),
  /** What the driver says of every GPU, also of those that this build cannot use. */
  gpus: z.array(z.looseObject({ index: z.int() })).default([]),
});
export type Machine = z.infer<typeof hello>;

/** A driver of several GPUs that wakes up on a busy machine takes seconds. */
const helloLimitMs = 120_000;

/**
 * What the engine finds on this machine, and which kernels serve a model (absent: the published ones).
 * @throws {TesseraError} `noEngine`, `engineProtocol`, or what the engine says
 */
export async function readMachine(model?: string): Promise<Machine> {
  const args = model === undefined ? ['hello'] : ['hello', '--model', model];
  const machine = await askEngine(hello, args, { limitMs: helloLimitMs });
  if (machine.protocol !== protocolVersion) throw protocolMismatch(machine.protocol, protocolVersion);
  return machine;
}

/** `auto` becomes the first GPU whose fast kernels serve the model that was asked about, else the CPU. */
export function chooseDevice({ devices }: Pick<Machine, 'devices'>, wanted: string): string {
  if (wanted !== 'auto') return wanted;
  const serves = devices.find(({ device: name, unserved }) => name !== 'cpu' && unserved === undefined);
  return serves?.device ?? 'cpu';
}

/** `cuda:0,1` are two ranks. */
export function numRanks(chosen: string): number {
  return rankDevices(chosen).length;
}
