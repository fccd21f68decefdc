import { defineCommand } from '../command.ts';

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

export const command = defineCommand({
  summary: 'Say what this machine has, what is missing, and the way out',
  usage: '',
  options: {},
  numPositionals: [0, 0],
  run: async ({ core }) => (await core()).call('system:doctor', {}),
  text: ({ gpus, libraries, engine, disk, memory, cpu, problems }) =>
    [
      `engine     ${engine.version ?? 'missing'} (${engine.backends.join(', ') || 'no backend'}), ${engine.kernels.length} kernels`,
      `gpus       ${gpus.map(({ device, name }) => `${String(device)} ${String(name)}`).join(', ') || 'none'}`,
      `cpu        ${cpu.name}, ${cpu.cores} cores`,
      `memory     ${gib(memory.freeBytes)} free of ${gib(memory.totalBytes)}`,
      `disk       ${gib(disk.freeBytes)} free of ${gib(disk.totalBytes)} at ${disk.home}`,
      `libraries  ${
        Object.entries(libraries)
          .map(([name, found]) => `${name} ${describe(found)}`)
          .join(', ') || 'none'
      }`,
      ...problems.flatMap(({ message, hint }) => [
        '',
        `! ${message}`,
        ...(hint === undefined ? [] : [`  ${hint}`]),
      ]),
    ].join('\n'),
});

/** `(absent)`, its place where that is known, or `(found)`. */
function describe(library: unknown): string {
  if (typeof library === 'string') return library;
  const { found, path } = (library ?? {}) as { found?: boolean; path?: string };
  return library === true || found === true ? (path ?? '(found)') : '(absent)';
}
