import { setImmediate } from 'node:timers/promises';
import type { TokenCache } from './cache/tokenCache.ts';
import type { TokenTable } from './tokenise/tokenTable.ts';

export interface SearchProgress {
  /** Indices of examples that hold the text, found since the last report. */
  matches: number[];
  scanned: number;
  total: number;
}

const chunkTokens = 1 << 18;

/**
 * Looks for a text in all examples of a cache, letters of either case being the same. What is ASCII is looked for by its
 * bytes; case beyond ASCII needs the characters. Other work gets its turn after every chunk.
 */
export async function searchExamples(
  cache: TokenCache,
  table: TokenTable,
  text: string,
  onProgress: (progress: SearchProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const wanted = text.normalize('NFC').toLowerCase();
  const isAscii = /^[\0-\x7f]*$/.test(text);
  const needle = lowered(Buffer.from(text));
  const words = new LoweredWords(table);
  const total = cache.manifest.examples;
  let first = 0;
  for (const { offsets, ids } of cache.parts()) {
    const numExamples = offsets.length - 1;
    for (let from = 0; from < numExamples;) {
      const to = chunkEnd(offsets, from);
      const found = isAscii
        ? words.find(needle, ids, offsets, from, to)
        : words.findText(wanted, ids, offsets, from, to);
      const matches = found.map((local) => first + local);
      from = to;
      onProgress({ matches, scanned: first + to, total });
      await setImmediate();
      if (signal.aborted) return;
    }
    first += numExamples;
  }
}

/** The examples after `from` that make a chunk: at least one. */
function chunkEnd(offsets: number[], from: number): number {
  let to = from + 1;
  while (to < offsets.length - 1 && (offsets[to + 1] ?? 0) - (offsets[from] ?? 0) <= chunkTokens) to += 1;
  return to;
}

const headBytes = 8;

/**
 * Tokens' bytes, lowered, the first eight of each in two words: most tokens are put behind the text so far by two
 * stores, which are many times faster than copies of a few bytes.
 */
class LoweredWords {
  private readonly table: TokenTable;
  /** By token id; -1 where it was not met yet. */
  private sizes: Int32Array = new Int32Array(1 << 16).fill(-1);
  private heads: Int32Array = new Int32Array(1 << 17);
  private readonly longOnes = new Map<number, Buffer>();
  private text: Buffer = Buffer.alloc(chunkTokens * headBytes);
  private view = new DataView(this.text.buffer, this.text.byteOffset);

  constructor(table: TokenTable) {
    this.table = table;
  }

  find(needle: Buffer, ids: Int32Array, offsets: number[], from: number, to: number): number[] {
    const ends = this.fill(ids, offsets, from, to);
    const size = ends.at(-1) ?? 0;
    const matches: number[] = [];
    let at = 0;
    let example = 0;
    for (;;) {
      at = this.text.indexOf(needle, at);
      if (at < 0 || at + needle.length > size) return matches;
      while ((ends[example] ?? size) <= at) example += 1;
      const end = ends[example] ?? size;
      // A hit across two examples is none; the next may begin within the first of them still.
      if (at + needle.length > end) at += 1;
      else {
        matches.push(from + example);
        at = end;
      }
    }
  }

  /** The same for a text beyond ASCII, lowered already. */
  findText(wanted: string, ids: Int32Array, offsets: number[], from: number, to: number): number[] {
    let begin = 0;
    return this.fill(ids, offsets, from, to).flatMap((end, i) => {
      const text = this.text.toString('utf8', begin, end).toLowerCase();
      begin = end;
      return text.includes(wanted) ? [from + i] : [];
    });
  }

  /** Puts the examples' text one behind another. @returns where each of them ends, in bytes */
  private fill(ids: Int32Array, offsets: number[], from: number, to: number): number[] {
    const ends: number[] = [];
    let size = 0;
    for (let i = from; i < to; i++) {
      const last = offsets[i + 1] ?? 0;
      for (let t = offsets[i] ?? 0; t < last; t++) size = this.append(ids[t] ?? 0, size);
      ends.push(size);
    }
    return ends;
  }

  private append(id: number, size: number): number {
    let length = this.sizes[id] ?? -1;
    if (length < 0) length = this.learn(id);
    if (size + length + headBytes > this.text.length) this.grow(size + length + headBytes);
    this.view.setInt32(size, this.heads[2 * id] ?? 0, true);
    this.view.setInt32(size + 4, this.heads[2 * id + 1] ?? 0, true);
    if (length > headBytes) this.longOnes.get(id)?.copy(this.text, size);
    return size + length;
  }

  private learn(id: number): number {
    const bytes = lowered(Buffer.from(this.table.bytesOf(id)));
    if (id >= this.sizes.length) {
      this.sizes = resized(this.sizes, 2 * id, -1);
      this.heads = resized(this.heads, 4 * id, 0);
    }
    const head = Buffer.alloc(headBytes);
    bytes.copy(head);
    this.heads[2 * id] = head.readInt32LE(0);
    this.heads[2 * id + 1] = head.readInt32LE(4);
    if (bytes.length > headBytes) this.longOnes.set(id, bytes);
    this.sizes[id] = bytes.length;
    return bytes.length;
  }

  private grow(atLeast: number): void {
    const larger = Buffer.alloc(Math.max(2 * this.text.length, atLeast));
    this.text.copy(larger);
    this.text = larger;
    this.view = new DataView(larger.buffer, larger.byteOffset);
  }
}

function lowered(bytes: Buffer): Buffer {
  return bytes.map((byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte)) as Buffer;
}

function resized(array: Int32Array, size: number, rest: number): Int32Array {
  const larger = new Int32Array(size).fill(rest);
  larger.set(array);
  return larger;
}
