import type { ExampleTokens, RowPreview } from '../../contract/datasets.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { CachedExample, TokenCache } from './cache/tokenCache.ts';
import type { TokenTable } from './tokenise/tokenTable.ts';

const previewTokens = 64;

/** Rows for a grid: what stands before the first answer, and the answer, each as its first words. */
export function previewRows(cache: TokenCache, table: TokenTable, indices: number[]): RowPreview[] {
  return indices.map((index) => {
    const { ids, supervised, kind, file, place } = exampleAt(cache, index);
    const numSupervised = supervised.reduce((sum, mark) => sum + mark, 0);
    const first = supervised.indexOf(1);
    return {
      ...{ index, file, ...place, kind, tokens: ids.length, supervised: numSupervised },
      prompt: lastMessage(ids.subarray(0, first < 0 ? ids.length : first), table),
      answer: learnedText(ids, supervised, table),
    };
  });
}

/** The first words of what is learned, a line for each stretch of it: several answers are no single text. */
function learnedText(ids: Int32Array, supervised: Uint8Array, table: TokenTable): string {
  const parts: Uint8Array[] = [];
  let last = -1;
  for (let t = 0; t < ids.length && parts.length < previewTokens; t++) {
    const id = ids[t] ?? 0;
    if (supervised[t] !== 1 || table.isAdded(id)) continue;
    if (last >= 0 && t > last + 1) parts.push(Buffer.from('\n'));
    parts.push(table.bytesOf(id));
    last = t;
  }
  return Buffer.concat(parts).toString();
}

const roleLine = /^\s*\w+\n/;
const singleWord = /^\s*\w*\s*$/;

/** The text of the last stretch between the template's own tokens that says more than a role. */
function lastMessage(ids: Int32Array, table: TokenTable): string {
  for (let end = ids.length; end > 0;) {
    let begin = end;
    while (begin > 0 && !table.isAdded(ids[begin - 1] ?? 0)) begin -= 1;
    const text = textOf(ids.subarray(begin, end), table);
    if (!singleWord.test(text)) return text.replace(roleLine, '');
    end = begin - 1;
  }
  return textOf(ids, table);
}

/** The first words of some tokens. */
function textOf(ids: Int32Array, table: TokenTable): string {
  const parts = Array.from(ids.subarray(0, previewTokens), (id) => table.bytesOf(id));
  return Buffer.concat(parts).toString();
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
