import { defineCommand } from '../command.ts';
import { count } from '../progressBar.ts';
import { textTable } from '../runText.ts';
import { waterfallText } from '../waterfallText.ts';

export const command = defineCommand({
  summary: 'Compare runs: what differs, what came of it, and why one is faster',
  usage: 'RUN RUN… [--whole]',
  options: {
    whole: {
      type: 'boolean',
      help: 'the times per token include evaluation, checkpoints and loading',
    },
  },
  numPositionals: [2, Infinity],
  waiting: 'Comparing',
  run: async ({ positionals, options, core }) =>
    (await core()).call('runs:compare', { ids: positionals, whole: options.whole }),
  text: ({ differences, results, whyFaster, whyNot }) => {
    const cell = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
    const rows = differences.map(({ field, values }) => [
      field,
      ...values.map((value) => cell(value).slice(0, 40)),
    ]);
    const losses = (name: string, of: (run: (typeof results)[number]) => number | undefined) => [
      name,
      ...results.map((run) => of(run)?.toFixed(4) ?? ''),
    ];
    const table = textTable(
      ['', ...results.map(({ name, id }) => `${name} (${id})`)],
      [
        ...rows,
        ['status', ...results.map(({ status }) => status)],
        losses('first loss', (run) => run.firstLoss),
        losses('last loss', (run) => run.lastLoss),
        losses('held-out after', (run) => run.evalLossAfter),
        [
          'tokens/s',
          ...results.map((run) => (run.tokensPerSecond === undefined ? '' : count(run.tokensPerSecond))),
        ],
      ],
    );
    return `${table}\n\n${whyFaster === undefined ? `No waterfall: ${whyNot ?? 'unknown'}.` : waterfallText(whyFaster)}`;
  },
});
