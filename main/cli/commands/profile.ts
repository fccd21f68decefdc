import type { ProfileRow } from '../../contract/profile.ts';
import { writeWhole } from '../../core/writeWhole.ts';
import { defineCommand } from '../command.ts';
import { wayOut } from '../help.ts';
import { textTable } from '../runText.ts';

export const command = defineCommand({
  summary: "Show where a step's time went, what holds the run back, and what would help",
  usage: 'RUN [--now] [--trace FILE]',
  options: {
    now: { type: 'boolean', help: 'profile the next step of the run first' },
    trace: { type: 'string', value: 'FILE', help: 'write the timeline for chrome://tracing or Perfetto' },
  },
  numPositionals: [1, 1],
  waiting: 'Reading the profile',
  run: async (invocation) => {
    const core = await invocation.core();
    const id = invocation.positionals[0] ?? '';
    if (invocation.options.now) {
      invocation.progress.wait('Waiting for a step to be profiled');
      await core.call('runs:command', { id, command: 'profile' });
    }
    if (invocation.options.trace !== undefined) {
      await writeWhole(invocation.options.trace, (await core.call('runs:trace', { id })).json);
    }
    return (await core.call('runs:profile', { id })).profile;
  },
  text: ({ step, headline, summary, verdict, host, device }) =>
    [
      [step === undefined ? '' : `Step ${step}. ${headline}`, summary].join('\n'),
      verdict.length === 0
        ? ''
        : textTable(
            ['would save', 'finding', 'what to do'],
            verdict
              .slice(0, 8)
              .map(({ finding, estimateMs, advice }) => [ms(estimateMs), finding, wayOut(advice)]),
            [0],
          ),
      table(device.length > 0 ? 'On the GPU' : '', device),
      table('On the CPU', host),
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
});

const ms = (value: number) => `${value.toFixed(2)} ms`;

function table(title: string, rows: ProfileRow[]): string {
  if (rows.length === 0) return '';
  const total = rows.reduce((sum, { totalMs }) => sum + totalMs, 0);
  const cells = [...rows]
    .sort((a, b) => b.totalMs - a.totalMs)
    .map(({ operation, phase, where, calls, averageUs, totalMs, percentOfRoof, couldSaveMs }) => [
      where === 'outside' && operation.startsWith('linear_') ? `${operation} (head)` : operation,
      phase,
      String(calls),
      averageUs.toFixed(1),
      totalMs.toFixed(2),
      `${((totalMs / total) * 100).toFixed(1)} %`,
      percentOfRoof === undefined ? 'n/a' : `${percentOfRoof.toFixed(0)} %`,
      couldSaveMs === undefined ? 'n/a' : couldSaveMs.toFixed(2),
    ]);
  const head = [
    'operation',
    'phase',
    'calls',
    'average µs',
    'total ms',
    'share',
    'of its limit',
    'to save ms',
  ];
  return `${title}\n${textTable(head, cells, [2, 3, 4, 5, 6, 7])}`;
}
