import type { ProfileRow, RunProfile } from '../../../../main/contract/profile.ts';
import type { ChartTable } from '../../../charts/chartExport.ts';

export type Group = 'matrix' | 'delta' | 'attention' | 'memory' | 'wait';
/** What an operation is, with the colour token that it has in every part of the profile. */
export const groups: Record<Group, { label: string; color: string }> = {
  matrix: { label: 'matrix products', color: 'c1' },
  delta: { label: 'delta rule', color: 'c3' },
  attention: { label: 'attention', color: 'c2' },
  memory: { label: 'memory-bound', color: 'c7' },
  wait: { label: 'copies, waiting', color: 'c8' },
};

export function groupOf(operation: string): Group {
  if (operation.startsWith('linear_')) return 'matrix';
  if (/^gdn_(kkt|fwd|bwd)/.test(operation)) return 'delta';
  if (operation.startsWith('attention_')) return 'attention';
  return /^(wait|launch|upload|download|copy|zero|synchronize)/.test(operation) ? 'wait' : 'memory';
}

export const colorOf = (operation: string) => groups[groupOf(operation)].color;

/** `linear_fwd`, `linear_fwd (head)`, `rmsnorm_fwd (again)` */
export function nameOf({ operation, phase, where }: ProfileRow): string {
  if (phase === 'recompute') return `${operation} (again)`;
  return where === 'outside' && operation.startsWith('linear_') ? `${operation} (head)` : operation;
}

/** Rows of one name as one: the same operation in several phases or places that are not told apart. */
export function mergeRows(rows: ProfileRow[]): ProfileRow[] {
  const byName = new Map<string, ProfileRow>();
  for (const row of rows) {
    const name = nameOf(row);
    const known = byName.get(name);
    byName.set(name, known === undefined ? row : join(known, row));
  }
  return [...byName.values()];
}

function join(a: ProfileRow, b: ProfileRow): ProfileRow {
  const calls = a.calls + b.calls;
  const totalMs = a.totalMs + b.totalMs;
  const { couldSaveMs: savedA, ...rest } = a;
  const saved =
    savedA === undefined && b.couldSaveMs === undefined ? undefined : (savedA ?? 0) + (b.couldSaveMs ?? 0);
  return {
    ...rest,
    calls,
    totalMs,
    averageUs: calls > 0 ? (totalMs * 1000) / calls : 0,
    flops: a.flops + b.flops,
    bytes: a.bytes + b.bytes,
    ...(saved !== undefined && {
      couldSaveMs: saved,
      percentOfRoof: totalMs > 0 ? 100 * (1 - saved / totalMs) : 0,
    }),
  };
}

export function timelineTable({ timeline }: RunProfile): ChartTable {
  return {
    columns: ['operation', 'phase', 'layer', 'startMs', 'ms'],
    rows: timeline.map(({ operation, phase, layer, startMs, ms }) => [operation, phase, layer, startMs, ms]),
  };
}
