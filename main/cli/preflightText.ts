import type { Preflight } from '../contract/runs.ts';

const marks = { pass: '✓', warn: '!', stop: '✗' } as const;

/** The checklist, with the way out under what is not right. */
export function preflightText({ items, memory }: Preflight): string {
  const lines = items.flatMap(({ name, status, message, hint }) => [
    `${marks[status]} ${name.padEnd(11)} ${message}`,
    ...(hint === undefined || status === 'pass' ? [] : [`  ${''.padEnd(11)} ${hint}`]),
  ]);
  const parts = Object.entries(memory).filter(([name]) => name !== 'total');
  if (parts.length > 0) {
    lines.push(
      `  ${'memory of'.padEnd(11)} ${parts.map(([name, bytes]) => `${name} ${(bytes / 2 ** 20).toFixed(0)} MiB`).join(', ')}`,
    );
  }
  return lines.join('\n');
}
