import type { DoctorReport } from '../../../main/contract/system.ts';
import { bytes, integer } from '../../format.ts';

export interface Fact {
  state: 'ok' | 'attention';
  what: string;
  /** Small print beside what it is. */
  which?: string;
  value: string;
  hint?: string;
}

/** What the first page says of the machine: what training would use, then what is in the way. */
export function machineFacts(report: DoctorReport): Fact[] {
  const gpus = report.gpus.map((gpu): Fact => {
    const [total, free] = [numberOf(gpu['memoryBytes']), numberOf(gpu['freeBytes'])];
    const memory =
      total === undefined ? '' : free === undefined ? bytes(total) : `${bytes(free)} of ${bytes(total)} free`;
    return {
      state: 'ok',
      what: textOf(gpu['name']) ?? 'GPU',
      which: textOf(gpu['device']) ?? '',
      value: memory,
    };
  });
  const { cpu, memory, disk } = report;
  return [
    ...gpus,
    { state: 'ok', what: 'Processor', which: cpu.name, value: `${integer(cpu.cores)} cores` },
    { state: 'ok', what: 'Memory', value: `${bytes(memory.freeBytes)} of ${bytes(memory.totalBytes)} free` },
    {
      state: report.problems.some(({ code }) => code === 'lowDisk') ? 'attention' : 'ok',
      what: 'Disk',
      value: `${bytes(disk.freeBytes)} free`,
    },
  ];
}

export function engineFacts({ engine, libraries, gpus }: DoctorReport): Fact[] {
  if (engine.version === undefined) return [];
  const names = Object.keys(libraries).filter((name) => isFound(libraries[name]));
  const slow = engine.kernels.filter(({ slow }) => slow);
  return [
    { state: 'ok', what: 'Engine', which: engine.version, value: engine.backends.join(', ') },
    // Without a GPU these libraries are not missed.
    ...(gpus.length === 0 || Object.keys(libraries).length === 0
      ? []
      : [
          {
            state: 'ok' as const,
            what: names.length === 0 ? 'GPU libraries' : names.join(', '),
            value: `${integer(names.length)} of ${integer(Object.keys(libraries).length)} found`,
          },
        ]),
    ...slow.map((kernel): Fact => {
      const reason = textOf(kernel['reason']);
      return {
        state: 'attention',
        what: textOf(kernel['operation']) ?? 'kernel',
        value: 'slower kernel',
        ...(reason !== undefined && { hint: reason }),
      };
    }),
  ];
}

function isFound(library: unknown): boolean {
  if (typeof library === 'object' && library !== null) {
    const { found, path } = library as Record<string, unknown>;
    return found === true || typeof path === 'string';
  }
  return library === true || (typeof library === 'string' && library !== '');
}

const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined);
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
