import { runSummary, type RunDetail, type RunSummary } from '../../contract/runs.ts';

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

function flatten(value: unknown, path = '', into = new Map<string, unknown>()): Map<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [key, each] of Object.entries(value))
      flatten(each, path === '' ? key : `${path}.${key}`, into);
  } else if (value !== undefined) into.set(path, value);
  return into;
}
