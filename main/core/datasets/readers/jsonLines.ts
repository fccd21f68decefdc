import { readLines } from './lines.ts';
import type { ReadItem, ReadLimits } from './rows.ts';

/** JSON Lines: one value a line; blank lines are no rows and no errors. */
export async function* readJsonLines(
  chunks: AsyncIterable<Buffer>,
  limits: ReadLimits,
): AsyncGenerator<ReadItem[]> {
  for await (const lines of readLines(chunks, limits.maxRecordBytes)) {
    const items: ReadItem[] = [];
    for (const line of lines) {
      const at = { line: line.line };
      if ('problem' in line) items.push({ at, problem: line.problem });
      else if (!isBlank(line.text)) items.push({ at, json: line.text });
    }
    if (items.length > 0) yield items;
  }
}

/** JSON's own white space only: a line of U+2028 is no blank line. */
function isBlank(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code !== 32 && code !== 9 && code !== 13) return false;
  }
  return true;
}
