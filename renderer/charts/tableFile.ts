/** The numbers behind a chart. */
export interface ChartTable {
  columns: string[];
  rows: (string | number | null)[][];
}

/** RFC 4180; a cell that a spreadsheet would take for a formula gets an apostrophe before it. */
export function toCsv({ columns, rows }: ChartTable): string {
  return csvLines([columns, ...rows]);
}

/** The lines of a part of such a table. */
export function csvLines(rows: ChartTable['rows']): string {
  const cell = (value: string | number | null) => {
    if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
    const text = value === null ? '' : /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** `[{column: value, …}, …]`; what is no number (a gap) is null. */
export function toJson({ columns, rows }: ChartTable): string {
  const objects = rows.map((row) =>
    Object.fromEntries(columns.map((column, i) => [column, finite(row[i] ?? null)])),
  );
  return `${JSON.stringify(objects, null, 1)}\n`;
}

const finite = (value: string | number | null) =>
  typeof value === 'number' && !Number.isFinite(value) ? null : value;
