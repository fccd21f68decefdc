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
 * Looks for a text in all examples of a cache, by its bytes; ASCII letters of either case are the same. Other work
 * gets its turn after every chunk.
 */
export async function searchExamples(
  cache: TokenCache,
  table: TokenTable,
  text: string,
  onProgress: (progress: SearchProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const needle = lowered(Buffer.from(text));
  const words = new LoweredWords(table);
  const total = cache.manifest.examples;
  let first = 0;
  for (const { offsets, ids } of cache.parts()) {
    const numExamples = offsets.length - 1;
    for (let from = 0; from < numExamples;) {
      const to = chunkEnd(offsets, from);
      const matches = words.find(needle, ids, offsets, from, to).map((local) => first + local);
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

/** Every token's bytes in one pool, lowered, so that a chunk of text is put together by copies alone. */
class LoweredWords {
  private readonly table: TokenTable;
  private pool: Buffer = Buffer.alloc(1 << 20);
  private used = 0;
  /** By token id: where its bytes begin in the pool, plus one, and how many they are. */
  private starts: Int32Array = new Int32Array(1 << 16);
  private sizes: Int32Array = new Int32Array(1 << 16);
  private text: Buffer = Buffer.alloc(chunkTokens * 8);

  constructor(table: TokenTable) {
    this.table = table;
  }

  find(needle: Buffer, ids: Int32Array, offsets: number[], from: number, to: number): number[] {
    const ends: number[] = [];
    let size = 0;
    for (let i = from; i < to; i++) {
      for (let t = offsets[i] ?? 0; t < (offsets[i + 1] ?? 0); t++) size = this.append(ids[t] ?? 0, size);
      ends.push(size);
    }
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

  private append(id: number, size: number): number {
    if ((this.starts[id] ?? 0) === 0) this.learn(id);
    const start = (this.starts[id] ?? 1) - 1;
    const length = this.sizes[id] ?? 0;
    if (size + length > this.text.length) this.text = grown(this.text, size + length);
    const { text, pool } = this;
    for (let i = 0; i < length; i++) text[size + i] = pool[start + i] ?? 0;
    return size + length;
  }

  private learn(id: number): void {
    const bytes = lowered(Buffer.from(this.table.bytesOf(id)));
    if (this.used + bytes.length > this.pool.length) this.pool = grown(this.pool, this.used + bytes.length);
    if (id >= this.starts.length) {
      this.starts = resized(this.starts, 2 * id);
      this.sizes = resized(this.sizes, 2 * id);
    }
    bytes.copy(this.pool, this.used);
    this.starts[id] = this.used + 1;
    this.sizes[id] = bytes.length;
    this.used += bytes.length;
  }
}

function lowered(bytes: Buffer): Buffer {
  return bytes.map((byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte)) as Buffer;
}

function grown(buffer: Buffer, atLeast: number): Buffer {
  const larger = Buffer.alloc(Math.max(2 * buffer.length, atLeast));
  buffer.copy(larger);
  return larger;
}

function resized(array: Int32Array, size: number): Int32Array {
  const larger = new Int32Array(size);
  larger.set(array);
  return larger;
}
