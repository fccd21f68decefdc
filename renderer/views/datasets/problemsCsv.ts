import { integer } from '../../format.ts';

export interface SkippedRow {
  file: string;
  line?: number | undefined;
  row?: number | undefined;
  reason: string;
}

/** `line 12`, `row 3` */
export function placeText({ line, row }: Pick<SkippedRow, 'line' | 'row'>): string {
  return line === undefined ? `row ${integer(row ?? 0)}` : `line ${integer(line)}`;
}

/** Reasons that differ only in their numbers and names, counted together, the most frequent first. */
export function groupReasons(rows: readonly SkippedRow[]): { reason: string; count: number }[] {
  const groups = new Map<string, { reason: string; count: number }>();
  for (const { reason } of rows) {
    const kind = reason.replace(/\d[\d,.]*/g, '#').replace(/'[^']*'/g, "'…'");
    const known = groups.get(kind);
    if (known === undefined) groups.set(kind, { reason, count: 1 });
    else known.count += 1;
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
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
