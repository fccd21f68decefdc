import { isUtf8 } from 'node:buffer';
import { formatBytes } from './rows.ts';

export type Line = { line: number; text: string } | { line: number; problem: string };

/**
 * Cuts a byte stream into lines: they end at LF, a CR before it belongs to the line end, a BOM at the very start is
 * taken off, every other character is ordinary (U+2028 too). A line beyond `maxBytes` is counted, never kept.
 * @returns batches of lines, blank ones included (their text is empty)
 */
export async function* readLines(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line[]> {
  let pieces: Buffer[] = [];
  let numBytes = 0;
  let line = 0;

  const add = (piece: Buffer) => {
    numBytes += piece.length;
    if (numBytes <= maxBytes) pieces.push(piece);
    else pieces = [];
  };
  const finish = (): Line => {
    line += 1;
    const bytes = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
    const size = numBytes;
    pieces = [];
    numBytes = 0;
    if (size > maxBytes) {
      return {
        line,
        problem: `a line of ${formatBytes(size)}; lines up to ${formatBytes(maxBytes)} are read`,
      };
    }
    return decodeLine(bytes, line);
  };

  for await (const chunk of chunks) {
    const batch: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end));
      batch.push(finish());
      from = end + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
    if (batch.length > 0) yield batch;
  }
  if (numBytes > 0) yield [finish()];
}

function decodeLine(bytes: Buffer, line: number): Line {
  let start = 0;
  let end = bytes.length;
  if (line === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) start = 3;
  if (end > start && bytes[end - 1] === 13) end -= 1;
  const content = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
  if (isUtf8(content)) return { line, text: content.toString('utf8') };
  return { line, problem: notUtf8(content) };
}

/** Names the first byte that is not UTF-8, counted from 1. */
export function notUtf8(bytes: Buffer): string {
  let valid = 0;
  let invalid = bytes.length;
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    // A cut inside a character is no fault of the part before it.
    if (isUtf8(bytes.subarray(0, characterStart(bytes, middle)))) valid = middle;
    else invalid = middle;
  }
  const at = characterStart(bytes, valid);
  const value = (bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, '0');
  return `not UTF-8: byte 0x${value} at position ${String(at + 1)}; save the file as UTF-8`;
}

function characterStart(bytes: Buffer, position: number): number {
  let start = position;
  while (start > 0 && position - start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
