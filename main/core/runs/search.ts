import type { RunListRow } from '../../../db/queries/runs.ts';

/**
 * Words that all must match: a bare word in name, id, tags, notes or status; `field:word` in a recipe field whose
 * path ends so (`strategy:bfd`); `field<number`, `field>number` compare it (`lr<1e-5`).
 */
export function searchRuns(rows: RunListRow[], query = ''): RunListRow[] {
  const terms = query
    .split(/\s+/)
    .filter((term) => term !== '')
    .map(parseTerm);
  return terms.length === 0 ? rows : rows.filter((row) => terms.every((matches) => matches(row)));
}

function parseTerm(term: string): (row: RunListRow) => boolean {
  const [, field, operator, value] = /^([\w.]+)([:<>])(.+)$/.exec(term) ?? [];
  if (field === undefined || value === undefined) {
    const word = term.toLowerCase();
    return (row) =>
      [row.name, row.id, row.tags, row.notes, row.status].some((text) => text.toLowerCase().includes(word));
  }
  return (row) =>
    valuesOf(row, field).some((found) => {
      if (operator === '<') return Number(found) < Number(value);
      if (operator === '>') return Number(found) > Number(value);
      return String(found).toLowerCase() === value.toLowerCase();
    });
}

function valuesOf(row: RunListRow, field: string): unknown[] {
  const wanted = field.toLowerCase();
  const found: unknown[] = [];
  const visit = (value: unknown, path: string) => {
    if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) visit(each, `${path}.${key.toLowerCase()}`);
    } else if (path.endsWith(`.${wanted}`)) found.push(value);
  };
  const { firstLoss, lastLoss, tokensPerSecond, steps, status, name } = row;
  visit(
    {
      ...(JSON.parse(row.recipe) as object),
      firstLoss,
      lastLoss,
      tokensPerSecond,
      doneSteps: steps,
      status,
      name,
    },
    '',
  );
  for (const tag of JSON.parse(row.tags) as string[]) visit(tag, '.tag');
  return found;
}
