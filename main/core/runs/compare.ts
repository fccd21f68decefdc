import { runSummary, type RunDetail, type RunSummary, type WhyFaster } from '../../contract/runs.ts';
import { sumAccounts } from './account.ts';
import { isMeasured, whyFaster } from './whyFaster.ts';

export interface Comparison {
  differences: { field: string; values: unknown[] }[];
  results: RunSummary[];
}

/** Fields that differ between runs: of the recipe, of the data, of the machine; a run without a field shows null. */
export function compareRuns(runs: RunDetail[]): Comparison {
  const flat = runs.map(({ recipe, hashes, plan, device }) => {
    const { recipe: _hash, ...rest } = hashes;
    return flatten({ ...recipe, hashes: rest, plan, device });
  });
  const fields = [...new Set(flat.flatMap((each) => [...each.keys()]))].sort();
  const differences = fields
    .map((field) => ({ field, values: flat.map((each) => each.get(field) ?? null) }))
    .filter(({ values }) => new Set(values.map((value) => JSON.stringify(value))).size > 1);
  return { differences, results: runs.map((run) => runSummary.parse(run)) };
}

/**
 * The waterfall between two runs, or why there is none.
 * @param accountsOf what the engines of a run stored of where its time went
 */
export function explainSpeed(
  [from, to]: [RunSummary | undefined, RunSummary | undefined],
  accountsOf: (id: string) => string[],
  whole: boolean,
): { whyFaster: WhyFaster } | { whyNot: string } {
  if (from === undefined || to === undefined)
    return { whyNot: 'the pair names a run that is not among them' };
  const [a, b] = [from, to].map(({ id }) => sumAccounts(accountsOf(id)));
  for (const [run, account] of [[from, a] as const, [to, b] as const]) {
    if (account === undefined || !isMeasured(account)) {
      const why = run.steps === 0 ? 'it took no step' : 'none of its steps was profiled';
      return { whyNot: `of ${run.name} (${run.id}) no operation times are stored: ${why}` };
    }
  }
  if (a === undefined || b === undefined) return { whyNot: 'no operation times are stored' };
  const name = ({ id, name: called }: RunSummary) => ({ id, name: called });
  return { whyFaster: { from: name(from), to: name(to), ...whyFaster(a, b, whole) } };
}

function flatten(value: unknown, path = '', into = new Map<string, unknown>()): Map<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [key, each] of Object.entries(value))
      flatten(each, path === '' ? key : `${path}.${key}`, into);
  } else if (value !== undefined) into.set(path, value);
  return into;
}
