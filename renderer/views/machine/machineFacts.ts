import { bytes } from '../../format.ts';
import { nvlinkText, pcieText } from './links.ts';

/** What driver and engine say of a GPU as name and value; what it does not report is `n/a`, never zero. */
export function gpuFacts(gpu: Record<string, unknown>): { name: string; value: string }[] {
  const text = (key: string) =>
    typeof gpu[key] === 'string' || typeof gpu[key] === 'number' ? String(gpu[key]) : 'n/a';
  const size = (key: string) => (typeof gpu[key] === 'number' ? bytes(gpu[key]) : 'n/a');
  const cuda = typeof gpu.cudaDriver === 'string' ? `, CUDA up to ${gpu.cudaDriver}` : '';
  return [
    { name: 'Name', value: text('name') },
    { name: 'Device', value: typeof gpu.device === 'string' ? gpu.device : 'not usable by this engine' },
    { name: 'Bus', value: text('pciBusId') },
    { name: 'Memory', value: size('memoryBytes') },
    { name: 'Compute capability', value: text('computeCapability') },
    { name: 'Driver', value: `${text('driver')}${cuda}` },
    { name: 'PCI Express', value: pcieText(gpu) },
    { name: 'NVLink', value: nvlinkText(gpu) },
  ];
}

export interface LibraryRow {
  name: string;
  isFound: boolean;
  where: string;
}

/** Libraries that the engine opens at run time: where each was found, or why it is not there. */
export function libraryRows(libraries: Record<string, unknown>): LibraryRow[] {
  return Object.entries(libraries).map(([name, entry]) => {
    const record =
      typeof entry === 'object' && entry !== null ? (entry as Record<string, unknown>) : { path: entry };
    const path = firstText(record.path, record.foundAt, record.file);
    const isFound = record.found === true || (record.found === undefined && path !== undefined);
    const reason = firstText(record.reason, record.error);
    return { name, isFound, where: isFound ? (path ?? 'found') : (reason ?? 'not found') };
  });
}

function firstText(...values: unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value !== '');
}
