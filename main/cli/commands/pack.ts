import { counted } from '../../contract/counted.ts';
import { secondsOf } from '../../contract/cost.ts';
import { TesseraError } from '../../contract/errors.ts';
import {
  overlongNames,
  strategyNames,
  type PackingLayout,
  type PackingSummary,
} from '../../contract/packing.ts';
import { readLengths } from '../../core/packing/lengthsFile.ts';
import { packAndSummarise } from '../../core/packing/summary.ts';
import {
  choiceOption,
  defineCommand,
  numberOption,
  usage,
  type Invocation,
  type Options,
} from '../command.ts';
import { program } from '../help.ts';

type Placement = number | { example: number; start: number; length: number };
type Forecast = { seconds: number; errorSeconds: number };
type PackResult = PackingSummary & { placements?: Placement[][]; forecast?: Forecast };

const options = {
  lengths: {
    type: 'string',
    value: 'FILE',
    help: 'pack lengths in tokens, one a line, instead of a dataset',
  },
  budget: { type: 'string', value: 'N', help: 'tokens a bin may hold; several: 4096,8192' },
  strategy: { type: 'string', value: 'S', help: `${strategyNames.join(', ')} or all; default best-fit` },
  overlong: {
    type: 'string',
    value: 'RULE',
    help: 'drop, truncate (chats) or split (texts) what is too long',
  },
  seed: { type: 'string', value: 'N', help: 'orders are drawn from it; default 0' },
  epochs: { type: 'string', value: 'N', help: 'passes over the data; default 1' },
  ranks: { type: 'string', value: 'N', help: 'devices that share each step; default 1' },
  accumulate: { type: 'string', value: 'N', help: 'bins that a device computes in a step; default 1' },
  placements: { type: 'boolean', help: 'list what is in each bin' },
  forecast: {
    type: 'boolean',
    help: 'how long training takes here; steps are timed first where that is not known',
  },
} satisfies Options;

export const command = defineCommand({
  summary: 'Pack a dataset into bins and say how full they get',
  usage: '(ID | --lengths FILE) --budget N',
  options,
  numPositionals: [0, 1],
  waiting: 'Packing',
  run: async (invocation): Promise<PackResult | { plans: PackResult[] }> => {
    const budgets = listOf(invocation.options.budget).map((text) => wholeNumber('budget', text));
    if (budgets.length === 0) throw usage('--budget N is missing', 'For instance: --budget 8192');
    const strategies = strategiesOf(invocation.options.strategy);
    const pack = packer(invocation);
    const plans: PackResult[] = [];
    for (const budget of budgets) {
      for (const strategy of strategies) plans.push(await pack(budget, strategy));
    }
    return plans.length === 1 ? (plans[0] as PackResult) : { plans };
  },
  text: (result) => table('plans' in result ? result.plans : [result]),
});

type Pack = (budget: number, strategy: (typeof strategyNames)[number]) => Promise<PackResult>;

/** Lengths from a file are packed here; a dataset by the core, which holds it. */
function packer({ positionals, options, core, progress }: Invocation<typeof command.options>): Pack {
  const [dataset] = positionals;
  if ((dataset === undefined) === (options.lengths === undefined)) {
    throw usage('give either the id of a dataset or --lengths FILE', `${program} data list shows the ids.`);
  }
  const overlong = choiceOption('overlong', options.overlong, overlongNames);
  const common = {
    ...(overlong && { overlong }),
    seed: wholeNumber('seed', options.seed ?? '0'),
    epochs: wholeNumber('epochs', options.epochs ?? '1'),
    ranks: wholeNumber('ranks', options.ranks ?? '1'),
    gradAccumulation: wholeNumber('accumulate', options.accumulate ?? '1'),
  };
  if (options.forecast && dataset === undefined)
    throw usage('--forecast needs a dataset', 'Lengths alone say nothing of a model.');
  if (options.lengths !== undefined) {
    const lengths = readLengths(options.lengths);
    return (budget, strategy) => {
      const { plan, summary } = packAndSummarise({ ...common, lengths, budget, strategy });
      return Promise.resolve(options.placements ? withPlacements(summary, plan, lengths) : summary);
    };
  }
  return async (budget, strategy) => {
    const request = {
      source: { dataset: dataset ?? '' },
      options: { ...common, budget, strategy },
      withLayout: options.placements,
    };
    const result = await (await core()).call('packing:plan', request, { onProgress: progress.update });
    const { summary, layout, lengths } = result;
    const packed = layout && lengths ? withPlacements(summary, layout, lengths) : summary;
    return options.forecast ? { ...packed, forecast: await forecastOf(dataset ?? '', summary) } : packed;
  };

  async function forecastOf(id: string, summary: PackingSummary): Promise<Forecast> {
    const question = { dataset: id, budget: summary.budget, gradAccumulation: common.gradAccumulation };
    const call = { onProgress: progress.update };
    const { cost, why } = await (await core()).call('packing:cost', { ...question, measure: true }, call);
    if (cost === undefined) throw new TesseraError('notMeasured', why ?? 'no step could be timed');
    return secondsOf(cost, summary);
  }
}

/** An example that stands whole in its bin is its index alone. */
function withPlacements(
  summary: PackingSummary,
  { example, start, length, binOffsets }: PackingLayout,
  lengths: Int32Array,
): PackResult {
  const placements = Array.from({ length: summary.bins }, (_, bin) => {
    const placed: Placement[] = [];
    for (let i = binOffsets[bin] ?? 0; i < (binOffsets[bin + 1] ?? 0); i++) {
      const part = { example: example[i] ?? 0, start: start[i] ?? 0, length: length[i] ?? 0 };
      placed.push(part.length === lengths[part.example] ? part.example : part);
    }
    return placed;
  });
  return { ...summary, placements };
}

function strategiesOf(text = 'best-fit') {
  if (text === 'all') return [...strategyNames];
  return listOf(text).flatMap((name) => choiceOption('strategy', name, strategyNames) ?? []);
}

function listOf(text = ''): string[] {
  return text.split(',').filter((part) => part !== '');
}

function wholeNumber(name: string, text: string): number {
  return numberOption(name, text, { integer: true }) as number;
}

function table(plans: PackResult[]): string {
  const rows = plans.map((plan) => [
    plan.strategy,
    String(plan.budget),
    String(plan.bins),
    String(plan.steps),
    `${(plan.fill * 100).toFixed(2)} %`,
    `${((plan.tokens / plan.positions) * 100).toFixed(2)} %`,
    plan.orderBias.withinBins.toFixed(2),
    plan.orderBias.betweenBins.toFixed(2),
    ...(plan.forecast ? [forecastCell(plan.forecast)] : []),
  ]);
  const head = ['strategy', 'budget', 'bins', 'steps', 'fill', 'real', 'bias within', 'between'];
  if (plans.some(({ forecast }) => forecast)) head.push('forecast');
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => (row[i] ?? '').length)));
  const lines = [head, ...rows].map((row) => row.map((cell, i) => cell.padStart(widths[i] ?? 0)).join('  '));
  return [...lines, ...plans.slice(0, 1).map(losses), ...meanings(plans)].join('\n');
}

function forecastCell({ seconds, errorSeconds }: Forecast): string {
  return `${seconds.toFixed(1)} s ± ${errorSeconds.toFixed(1)} s`;
}

function losses({ examples, tokens, dropped, truncated }: PackResult): string {
  return [
    '',
    `${counted(examples, 'example')}, ${counted(tokens, 'token')} packed`,
    `dropped: ${dropped.overlong} too long, ${dropped.nothingToLearn} with nothing to learn`,
    `truncated: ${counted(truncated.examples, 'example')} by ${counted(truncated.tokens, 'token')}`,
    '',
  ].join('\n');
}

/** A sentence a strategy; where it differs by budget, one a budget. */
function meanings(plans: PackResult[]): string[] {
  const alike = Map.groupBy(plans, ({ strategy, orderBias }) => `${strategy} ${orderBias.meaning}`);
  return [...alike.values()].map((group) => {
    const [{ strategy, orderBias }] = group as [PackResult];
    return `${strategy}, ${group.map(({ budget }) => budget).join(', ')}: ${orderBias.meaning}`;
  });
}
