import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import { z } from 'zod';
import { toErrorBody, type ErrorBody } from '../../contract/errors.ts';
import { numericsTest } from '../../contract/runs.ts';
import type { DoctorReport } from '../../contract/system.ts';
import { bundled } from '../bundled.ts';
import { engineBinary } from '../engine/binary.ts';
import { askEngine } from '../engine/askEngine.ts';
import { readMachine, type Machine } from '../engine/machine.ts';
import type { Home } from '../home.ts';

const lowDiskBytes = 5 * 2 ** 30;

/** What this machine has, what is missing and the way out. Nothing here throws: a fault is a problem in the list. */
export async function examine(home: Home): Promise<DoctorReport> {
  const problems: ErrorBody[] = [];
  const attempt = async <T>(what: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await what();
    } catch (error) {
      problems.push(toErrorBody(error));
      return undefined;
    }
  };
  const path = await attempt(engineBinary);
  const machine = path === undefined ? undefined : await attempt(() => readMachine());
  await attempt(bundled);
  const usable = machine?.devices.filter(({ device }) => device !== 'cpu') ?? [];
  const gpus = describeGpus(machine);
  if (machine !== undefined && usable.length === 0) {
    const isThere = gpus.length > 0;
    problems.push({
      code: 'noGpu',
      message: isThere
        ? 'this engine was built without CUDA: it cannot use the GPUs that are here'
        : 'no usable NVIDIA GPU was found',
      hint: isThere
        ? 'Build it on a machine with nvcc, or with TESSERA_CUDA=1.'
        : 'Training runs on the CPU: fit for the bundled model only.',
    });
  }
  problems.push(...(machine === undefined ? [] : gpuProblems(machine)));
  const { bavail, bsize, blocks } = statfsSync(home.root);
  const disk = { home: home.root, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  if (disk.freeBytes < lowDiskBytes) {
    problems.push({
      code: 'lowDisk',
      message: `${home.root} has less than 5 GiB free`,
      hint: 'Free some space, or choose another home (--home DIR).',
    });
  }
  return {
    gpus,
    libraries: machine?.libraries ?? {},
    engine: {
      ...(machine !== undefined && { version: machine.version }),
      ...(path !== undefined && { path }),
      backends: machine?.backends ?? [],
      kernels: machine?.kernels ?? [],
    },
    disk,
    memory: { freeBytes: availableMemory(), totalBytes: totalmem() },
    cpu: { name: cpus()[0]?.model.trim() ?? 'unknown', cores: availableParallelism() },
    problems,
  };
}

/** GPUs that cannot be used, and operations for which only a slow kernel was found. */
function gpuProblems({ devices, kernels }: Machine): ErrorBody[] {
  const unusable = devices.flatMap(({ unserved }) =>
    unserved === undefined ? [] : [{ code: 'unusableGpu', message: unserved }],
  );
  const slow = kernels
    .filter((kernel) => kernel.slow)
    .map(({ device = 'cpu', operation, reason }) => ({
      code: 'slowKernel',
      message: `${device} has only a slow kernel for ${operation}: ${reason}`,
      hint: 'Install the libraries of CUDA 13, or name their folder in ENGINE_LIB_PATH.',
    }));
  return [...unusable, ...slow];
}

/** Of every GPU what the driver says and, where the engine can use it, its device. */
function describeGpus(machine: Machine | undefined): Record<string, unknown>[] {
  const devices = machine?.devices.filter(({ device }) => device !== 'cpu') ?? [];
  const told = machine?.gpus ?? [];
  if (told.length === 0) return devices;
  return told.map(({ device: name, ...gpu }) => ({
    ...gpu,
    ...devices.find(({ device }) => device === name),
  }));
}

const roof = z.object({ flopsPerSecond: z.number(), bytesPerSecond: z.number() });
const measured = z.object({ numerics: numericsTest, roof: roof.optional() });

/**
 * Runs every kernel of a device against fp64 in the sizes of the published models, and measures a matrix product and
 * a copy: a few seconds.
 * @throws {TesseraError} what the engine says of the device
 */
export async function measureDevice(device: string, signal: AbortSignal): Promise<z.infer<typeof measured>> {
  const args = ['verify', '--numerics', '--roof', '--accept-slow', '--device', device];
  return askEngine(measured, args, { signal, maySayNo: true });
}

/** Linux counts caches as used; what a program can get is MemAvailable. */
export function availableMemory(): number {
  try {
    const kilobytes = /^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    return kilobytes === undefined ? freemem() : Number(kilobytes) * 1024;
  } catch {
    return freemem();
  }
}
