import { setImmediate } from 'node:timers/promises';
import type { TokenCache } from './cache/tokenCache.ts';
import { lowered, TokenSearch } from './tokenSearch.ts';
import type { TokenTable } from './tokenise/tokenTable.ts';

export interface SearchProgress {
  /** Indices of examples that hold the text, found since the last report. */
  matches: number[];
  scanned: number;
  total: number;
}

const chunkTokens = 1 << 18;

/**
 * Looks for a text in all examples of a cache, letters of either case being the same. Other work gets its turn after
 * every chunk.
 */
export async function searchExamples(
  cache: TokenCache,
  table: TokenTable,
  text: string,
  onProgress: (progress: SearchProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const isIn = searchFor(text, table);
  const total = cache.manifest.examples;
  let first = 0;
  for (const { offsets, ids } of cache.parts()) {
    const numExamples = offsets.length - 1;
    for (let from = 0; from < numExamples;) {
      const to = chunkEnd(offsets, from);
      const matches: number[] = [];
      for (let i = from; i < to; i++) {
        if (isIn(ids, offsets[i] ?? 0, offsets[i + 1] ?? 0)) matches.push(first + i);
      }
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

type IsIn = (ids: Int32Array, from: number, to: number) => boolean;

/**
 * ASCII is looked for by bytes. Case beyond ASCII needs the characters: those examples are read that hold the text's
 * longest stretch of ASCII, and its first other character in one of its cases.
 */
function searchFor(text: string, table: TokenTable): IsIn {
  const wanted = text.normalize('NFC').toLowerCase();
  const holds = (part: string) => new TokenSearch(lowered(Buffer.from(part)), table);
  const stretches = wanted.match(/[\0-\x7f]+/g) ?? [];
  const longest = stretches.reduce((best, each) => (each.length > best.length ? each : best), '');
  const ascii = longest === '' ? undefined : holds(longest);
  const other = /[^\0-\x7f]/u.exec(wanted)?.[0];
  if (other === undefined && ascii !== undefined) return (ids, from, to) => ascii.isIn(ids, from, to);
  const cases = [...casesOf(other ?? '')].map(holds);
  const reader = new TokenReader(table);
  return (ids, from, to) => {
    if (ascii !== undefined && !ascii.isIn(ids, from, to)) return false;
    if (!cases.some((each) => each.isIn(ids, from, to))) return false;
    return reader.text(ids, from, to).toLowerCase().includes(wanted);
  };
}

function casesOf(char: string): Set<string> {
  const all = new Set([char, char.toUpperCase()]);
  // A sigma is written otherwise at a word's end.
  return 'σς'.includes(char) ? new Set([...all, 'σ', 'ς']) : all;
}

/** Tokens as text, joined in one buffer that is used again. */
class TokenReader {
  private readonly table: TokenTable;
  private readonly bytes: (Uint8Array | undefined)[] = [];
  private joined = Buffer.alloc(1 << 16);

  constructor(table: TokenTable) {
    this.table = table;
  }

  text(ids: Int32Array, from: number, to: number): string {
    let size = 0;
    for (let t = from; t < to; t++) {
      const id = ids[t] as number;
      const bytes = (this.bytes[id] ??= this.table.bytesOf(id));
      if (size + bytes.length > this.joined.length)
        this.joined = Buffer.concat([this.joined], 2 * (size + bytes.length));
      for (let i = 0; i < bytes.length; i++) this.joined[size++] = bytes[i] as number;
    }
    return this.joined.toString('utf8', 0, size);
  }
}
