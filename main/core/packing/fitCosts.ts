/** Relative deviations that a fit leaves, and its factors, none negative. */
export interface Fit {
  factors: number[];
  /** Root of the mean squared residual, relative to the targets. */
  residual: number;
}

/**
 * Least squares of Σ factor × column = target over the relative deviations, with factors that are not negative: every
 * subset of the columns is solved, and the best one without a negative factor wins. For at most six columns.
 * @param rows one row of columns for each target; targets are positive
 */
export function fitNonNegative(rows: readonly number[][], targets: readonly number[]): Fit {
  const numColumns = rows[0]?.length ?? 0;
  let best: Fit = { factors: Array<number>(numColumns).fill(0), residual: Infinity };
  for (let subset = 1; subset < 2 ** numColumns; subset++) {
    const chosen = Array.from({ length: numColumns }, (_, i) => i).filter((i) => (subset >> i) & 1);
    if (chosen.length > rows.length) continue;
    const solved = solveRelative(rows, targets, chosen);
    if (solved === undefined || solved.some((factor) => factor < 0)) continue;
    const factors = Array<number>(numColumns).fill(0);
    chosen.forEach((column, i) => (factors[column] = solved[i] ?? 0));
    const residual = relativeResidual(rows, targets, factors);
    // A column more must be worth it: noise alone makes every fit a little better.
    if (residual < best.residual * 0.98) best = { factors, residual };
  }
  return best;
}

export function predict(row: readonly number[], factors: readonly number[]): number {
  return row.reduce((sum, value, i) => sum + value * (factors[i] ?? 0), 0);
}

function relativeResidual(rows: readonly number[][], targets: readonly number[], factors: number[]): number {
  const squares = rows.reduce((sum, row, i) => sum + (predict(row, factors) / (targets[i] ?? 1) - 1) ** 2, 0);
  return Math.sqrt(squares / rows.length);
}

/** Normal equations over columns scaled to one size; undefined where they do not determine the factors. */
function solveRelative(rows: readonly number[][], targets: readonly number[], chosen: number[]) {
  const scaled = rows.map((row, i) => chosen.map((column) => (row[column] ?? 0) / (targets[i] ?? 1)));
  const sizes = chosen.map((_, j) => Math.sqrt(scaled.reduce((sum, row) => sum + (row[j] ?? 0) ** 2, 0)));
  if (sizes.some((size) => size === 0)) return undefined;
  const unit = scaled.map((row) => row.map((value, j) => value / (sizes[j] ?? 1)));
  const matrix = chosen.map((_, j) => [
    ...chosen.map((__, k) => unit.reduce((sum, row) => sum + (row[j] ?? 0) * (row[k] ?? 0), 0)),
    unit.reduce((sum, row) => sum + (row[j] ?? 0), 0),
  ]);
  return eliminate(matrix)?.map((factor, j) => factor / (sizes[j] ?? 1));
}

function eliminate(matrix: number[][]): number[] | undefined {
  const n = matrix.length;
  for (let column = 0; column < n; column++) {
    const rest = matrix.slice(column);
    const pivot = rest.reduce((a, b) => (Math.abs(b[column] ?? 0) > Math.abs(a[column] ?? 0) ? b : a));
    const head = pivot[column] ?? 0;
    if (Math.abs(head) < 1e-9) return undefined;
    const at = column + rest.indexOf(pivot);
    [matrix[column], matrix[at]] = [pivot, matrix[column] ?? []];
    for (const row of matrix) {
      if (row === pivot) continue;
      const factor = (row[column] ?? 0) / head;
      row.forEach((value, i) => (row[i] = value - factor * (pivot[i] ?? 0)));
    }
  }
  return matrix.map((row, i) => (row[n] ?? 0) / (row[i] ?? 1));
}
