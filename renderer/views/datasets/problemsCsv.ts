export interface SkippedRow {
  file: string;
  line?: number | undefined;
  row?: number | undefined;
  reason: string;
}

/** `line 12`, `row 3` */
export function placeText({ line, row }: Pick<SkippedRow, 'line' | 'row'>): string {
  return line === undefined ? `row ${String(row ?? 0)}` : `line ${String(line)}`;
}

/** RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe before it. */
export function problemsCsv(rows: readonly SkippedRow[]): string {
  const lines = rows.map(({ file, line, row, reason }) =>
    [file, String(line ?? ''), String(row ?? ''), reason].map(cell).join(','),
  );
  return ['file,line,row,reason', ...lines].map((line) => `${line}\r\n`).join('');
}

function cell(text: string): string {
  const safe = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
