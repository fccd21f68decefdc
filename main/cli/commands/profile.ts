import { z } from 'zod';
import { defineCommand } from '../command.ts';
import { textTable } from '../runText.ts';

const operation = z.looseObject({
  operation: z.string(),
  phase: z.string().optional(),
  calls: z.number(),
  averageUs: z.number(),
  totalMs: z.number(),
});

export const command = defineCommand({
  summary: "Show where a step's time went",
  usage: 'RUN [--now]',
  options: { now: { type: 'boolean', help: 'profile the next step of the run first' } },
  numPositionals: [1, 1],
  run: async (invocation) => {
    const core = await invocation.core();
    const id = invocation.positionals[0] ?? '';
    if (invocation.options.now) await core.call('runs:command', { id, command: 'profile' });
    const { profile } = await core.call('runs:profile', { id });
    return { host: [], device: [], timeline: [], verdict: [], ...profile };
  },
  text: ({ host, device }) =>
    [table('Host', host), table('Device', device)].filter((part) => part !== '').join('\n\n'),
});

function table(title: string, rows: unknown): string {
  const parsed = z.array(operation).safeParse(rows);
  if (!parsed.success || parsed.data.length === 0) return '';
  const total = parsed.data.reduce((sum, { totalMs }) => sum + totalMs, 0);
  const cells = parsed.data
    .sort((a, b) => b.totalMs - a.totalMs)
    .map(({ operation: name, phase = '', calls, averageUs, totalMs }) => [
      name,
      phase,
      String(calls),
      averageUs.toFixed(1),
      totalMs.toFixed(2),
      `${((totalMs / total) * 100).toFixed(1)} %`,
    ]);
  return `${title}\n${textTable(['operation', 'phase', 'calls', 'average µs', 'total ms', 'share'], cells, [2, 3, 4, 5])}`;
}
