import { Dict } from '../template/values.ts';
import { readLines } from './lines.ts';
import type { ReadItem, ReadLimits } from './rows.ts';

/**
 * Plain text: the file is one text, as long as it is no larger than a field may be. A larger file becomes several
 * texts, cut at blank lines (at a line end where a paragraph alone is too large), so that memory stays bounded.
 * @returns rows `{text}` at the line where each begins
 */
export async function* readText(
  chunks: AsyncIterable<Buffer>,
  limits: ReadLimits,
): AsyncGenerator<ReadItem[]> {
  const maxChars = Math.floor(limits.maxFieldBytes / 4);
  let parts: string[] = [];
  let numChars = 0;
  let firstLine = 1;
  let lastBlank = -1;

  const cut = (numParts: number): ReadItem => {
    const text = parts.slice(0, numParts).join('\n');
    const item = { at: { line: firstLine }, value: Dict.of([['text', text]]) };
    firstLine += numParts;
    parts = parts.slice(numParts);
    numChars = parts.reduce((sum, part) => sum + part.length + 1, 0);
    lastBlank = -1;
    return item;
  };

  for await (const lines of readLines(chunks, limits.maxFieldBytes)) {
    const items: ReadItem[] = [];
    for (const line of lines) {
      if ('problem' in line) {
        if (parts.length > 0) items.push(cut(parts.length));
        items.push({ at: { line: line.line }, problem: line.problem });
        firstLine = line.line + 1;
        continue;
      }
      if (line.text === '') lastBlank = parts.length;
      parts.push(line.text);
      numChars += line.text.length + 1;
      if (numChars > maxChars) items.push(cut(lastBlank > 0 ? lastBlank + 1 : parts.length));
    }
    if (items.length > 0) yield items;
  }
  if (parts.some((part) => part.trim() !== '')) yield [cut(parts.length)];
}
