import { defineCommand } from '../command.ts';
import { wayOut } from '../help.ts';

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

export const command = defineCommand({
  summary: 'Say what this machine has, what is missing, and the way out',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  waiting: 'Looking at this machine',
  run: async ({ core }) => (await core()).call('system:doctor', {}),
  text: ({ gpus, libraries, engine, disk, memory, cpu, problems }) =>
    [
      `engine     ${engine.version ?? 'missing'} (${engine.backends.join(', ') || 'no backend'})`,
      ...named('gpu', gpus.map(gpuText)),
      `cpu        ${cpu.name}, ${cpu.cores} cores`,
      `memory     ${gib(memory.freeBytes)} free of ${gib(memory.totalBytes)}`,
      `disk       ${gib(disk.freeBytes)} free of ${gib(disk.totalBytes)} at ${disk.home}`,
      ...named('kernels', kernelTexts(engine.kernels)),
      ...named(
        'libraries',
        Object.entries(libraries).map(([name, found]) => `${name} ${describe(found)}`),
      ),
      ...problems.flatMap(({ message, hint }) => [
        '',
        `! ${message}`,
        ...(hint === undefined ? [] : [`  ${wayOut(hint)}`]),
      ]),
    ].join('\n'),
});

/** One line an entry, the name before the first. */
function named(name: string, entries: string[]): string[] {
  const lines = entries.length === 0 ? ['none'] : entries;
  return lines.map((line, i) => `${(i === 0 ? name : '').padEnd(11)}${line}`);
}

/** `cuda:0 NVIDIA H200, 139.7 GiB free of 140.4 GiB, compute capability 9.0, driver 580.159 (CUDA up to 13.0)` */
function gpuText(gpu: Record<string, unknown>): string {
  const { memoryBytes, freeBytes } = gpu;
  const [device, capability, driver, cuda] = ['device', 'computeCapability', 'driver', 'cudaDriver'].map(
    (key) => words(gpu[key]),
  );
  const free = typeof freeBytes === 'number' ? `${gib(freeBytes)} free of ` : '';
  return [
    `${device === undefined ? '' : `${device} `}${words(gpu.name) ?? 'a GPU'}`,
    ...(device === undefined ? ['not usable by this engine'] : []),
    ...(typeof memoryBytes === 'number' ? [`${free}${gib(memoryBytes)}`] : []),
    ...(capability === undefined ? [] : [`compute capability ${capability}`]),
    ...(driver === undefined ? [] : [`driver ${driver}${cuda === undefined ? '' : ` (CUDA up to ${cuda})`}`]),
  ].join(', ');
}

function words(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

/** `cuda:0 12 operations: 1 library, 8 portable, 3 hopper` */
function kernelTexts(kernels: Record<string, unknown>[]): string[] {
  const byDevice = Map.groupBy(kernels, ({ device }) => words(device) ?? 'cpu');
  return [...byDevice].map(([device, mine]) => {
    if (device === 'cpu') return `cpu ${mine.length} operations: ${words(mine[0]?.reason) ?? ''}`;
    const tiers = Map.groupBy(mine, ({ tier }) => words(tier) ?? '');
    const counts = [...tiers].map(([tier, of]) => `${of.length} ${tier}`);
    const slow = mine.filter((kernel) => kernel.slow === true).length;
    return `${device} ${mine.length} operations: ${counts.join(', ')}${slow === 0 ? '' : `; ${slow} slow`}`;
  });
}

/** `(absent)`, its place where that is known, or `(found)`. */
function describe(library: unknown): string {
  if (typeof library === 'string') return library;
  const { found, path } = (library ?? {}) as { found?: boolean; path?: string };
  return library === true || found === true ? (path ?? '(found)') : '(absent)';
}
