import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import { toErrorBody, type ErrorBody } from '../../contract/errors.ts';
import type { DoctorReport } from '../../contract/system.ts';
import { bundled } from '../bundled.ts';
import { engineBinary } from '../engine/binary.ts';
import { readMachine } from '../engine/machine.ts';
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
  const machine = path === undefined ? undefined : await attempt(readMachine);
  await attempt(bundled);
  const gpus = machine?.devices.filter(({ device }) => device !== 'cpu') ?? [];
  if (machine !== undefined && gpus.length === 0) {
    problems.push({
      code: 'noGpu',
      message: 'no usable NVIDIA GPU was found',
      hint: 'Training runs on the CPU: fit for the bundled model only.',
    });
  }
  const { bavail, bsize, blocks } = statfsSync(home.root);
  const disk = { home: home.root, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  if (disk.freeBytes < lowDiskBytes) {
    problems.push({
      code: 'lowDisk',
      message: `${home.root} has less than 5 GiB free`,
      hint: 'Free some space, or choose another --home.',
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

/** Linux counts caches as used; what a program can get is MemAvailable. */
export function availableMemory(): number {
  try {
    const kilobytes = /^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    return kilobytes === undefined ? freemem() : Number(kilobytes) * 1024;
  } catch {
    return freemem();
  }
}
