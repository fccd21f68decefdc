import type { ExampleTokens, RowPreview } from '../../contract/datasets.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { CachedExample, TokenCache } from './cache/tokenCache.ts';
import type { TokenTable } from './tokenise/tokenTable.ts';

const previewTokens = 64;

/** Rows for a grid: what is read and what is learned, each as its first words, without the template's own tokens. */
export function previewRows(cache: TokenCache, table: TokenTable, indices: number[]): RowPreview[] {
  return indices.map((index) => {
    const { ids, supervised, kind, file, place } = exampleAt(cache, index);
    const begin = (wanted: number) => {
      const parts: Uint8Array[] = [];
      for (let t = 0; t < ids.length && parts.length < previewTokens; t++) {
        const id = ids[t] ?? 0;
        if (supervised[t] === wanted && !table.isAdded(id)) parts.push(table.bytesOf(id));
      }
      return Buffer.concat(parts).toString();
    };
    const numSupervised = supervised.reduce((sum, mark) => sum + mark, 0);
    const size = { tokens: ids.length, supervised: numSupervised };
    return { index, file, ...place, kind, ...size, prompt: begin(0), answer: begin(1) };
  });
}

/** One example with the bytes of every token. @throws {TesseraError} `noExample` */
export function viewExample(cache: TokenCache, table: TokenTable, index: number): ExampleTokens {
  const { ids, supervised, kind, file, place } = exampleAt(cache, index);
  const parts = Array.from(ids, (id) => table.bytesOf(id));
  const byteOffsets = new Int32Array(ids.length + 1);
  for (const [t, part] of parts.entries()) byteOffsets[t + 1] = (byteOffsets[t] ?? 0) + part.length;
  const bytes = Uint8Array.from(Buffer.concat(parts));
  const special = Uint8Array.from(ids, (id) => Number(table.isAdded(id)));
  return { index, file, ...place, kind, ids, supervised, special, bytes, byteOffsets };
}

/** @throws {TesseraError} `noExample`, with how many there are */
export function exampleAt(cache: TokenCache, index: number): CachedExample {
  const { examples } = cache.manifest;
  if (index < examples) return cache.example(index);
  throw new TesseraError(
    'noExample',
    `there is no example ${String(index + 1)}: the dataset has ${String(examples)}`,
    'Examples count from 1.',
  );
}

/** What truncating at a budget cuts off. */
export function cutBy(cache: TokenCache, budget: number) {
  const cut = { examples: 0, tokens: 0, supervisedTokens: 0 };
  for (const { offsets, supervised } of cache.parts()) {
    for (let i = 1; i < offsets.length; i++) {
      const from = (offsets[i - 1] ?? 0) + budget;
      const to = offsets[i] ?? 0;
      if (from >= to) continue;
      cut.examples += 1;
      cut.tokens += to - from;
      for (let t = from; t < to; t++) cut.supervisedTokens += supervised[t] ?? 0;
    }
  }
  return cut;
}
