import { layerName } from '../contract/layerName.ts';
import type { Preflight } from '../contract/runs.ts';
import { wayOut } from './help.ts';
import { textTable } from './runText.ts';

/** As wide as the longest of the items' names. */
const nameWidth = 'learning rate'.length;
const marks = { pass: '✓', warn: '!', stop: '✗' } as const;

/** The checklist, with the way out under what is not right. */
export function preflightText({ items, memory, kernels = [] }: Preflight): string {
  const lines = items.flatMap(({ name, status, message, hint }) => [
    `${marks[status]} ${name.padEnd(nameWidth)} ${message}`,
    ...(hint === undefined || status === 'pass' ? [] : [`  ${''.padEnd(nameWidth)} ${wayOut(hint)}`]),
  ]);
  const parts = Object.entries(memory).filter(([name]) => name !== 'total');
  if (parts.length > 0) {
    lines.push(
      `  ${'memory of'.padEnd(nameWidth)} ${parts.map(([name, bytes]) => `${name} ${(bytes / 2 ** 20).toFixed(0)} MiB`).join(', ')}`,
    );
  }
  if (kernels.length > 0) lines.push('', kernelTable(kernels));
  return lines.join('\n');
}

/** Layer kind × operation: which kernel, of which tier, and why; `!` marks what is not the fast one. */
function kernelTable(kernels: NonNullable<Preflight['kernels']>): string {
  const rows = kernels.map(({ layerKind, operation, forward, backward, tier, reason, slow }) => [
    slow ? '!' : '',
    layerName(layerKind),
    operation,
    forward === backward || backward === '' ? forward : `${forward}, ${backward}`,
    tier,
    reason,
  ]);
  return textTable(['', 'layer', 'operation', 'kernel', 'tier', 'why'], rows);
}
