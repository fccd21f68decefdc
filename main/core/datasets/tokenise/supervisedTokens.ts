import type { JsEncoding } from 'tokenizers';

export type Spans = readonly (readonly [number, number])[];

/**
 * Which tokens lie wholly within the supervised spans (code points, sorted, end exclusive).
 * The tokenizer's own offsets cost more than all else here (an array for each token), so where the tokens' bytes
 * add up to the text's, positions are counted from those; the library's offsets serve for every other text.
 * @param numBytes bytes by token id, for a byte-level tokenizer
 * @returns U8 [tokens]
 */
export function supervisedTokens(
  text: string,
  spans: Spans,
  ids: readonly number[],
  encoding: JsEncoding,
  numBytes: Uint16Array | undefined,
): Uint8Array {
  const mask = new Uint8Array(ids.length);
  if (spans.length === 0) return mask;
  if (numBytes !== undefined && matchesText(text, ids, numBytes)) {
    markByBytes(mask, toByteSpans(text, spans), ids, numBytes);
  } else markByOffsets(mask, spans, encoding.getOffsets() as [number, number][]);
  return mask;
}

/** A normalizer may change the text (Qwen's composes it); then bytes say nothing about positions. */
function matchesText(text: string, ids: readonly number[], numBytes: Uint16Array): boolean {
  let total = 0;
  for (const id of ids) total += numBytes[id] as number;
  const textBytes = Buffer.byteLength(text);
  return total === textBytes && (textBytes === text.length || text === text.normalize('NFC'));
}

function markByBytes(mask: Uint8Array, spans: Spans, ids: readonly number[], numBytes: Uint16Array): void {
  let end = 0;
  let at = 0;
  let [from, to] = spans[0] as readonly [number, number];
  for (let i = 0; i < ids.length; i++) {
    const begin = end;
    end += numBytes[ids[i] as number] as number;
    while (begin >= to) {
      const next = spans[++at];
      if (next === undefined) return;
      [from, to] = next;
    }
    if (begin >= from && end <= to && end > begin) mask[i] = 1;
  }
}

function markByOffsets(mask: Uint8Array, spans: Spans, offsets: [number, number][]): void {
  let at = 0;
  for (const [i, [begin, end]] of offsets.entries()) {
    while (at < spans.length && begin >= (spans[at] as readonly [number, number])[1]) at += 1;
    const span = spans[at];
    if (span === undefined) return;
    if (begin >= span[0] && end <= span[1] && end > begin) mask[i] = 1;
  }
}

/** Spans in code points as spans in bytes of UTF-8. */
function toByteSpans(text: string, spans: Spans): Spans {
  if (Buffer.byteLength(text) === text.length) return spans;
  let index = 0;
  let point = 0;
  let byte = 0;
  const byteOf = (target: number): number => {
    while (point < target && index < text.length) {
      const code = text.codePointAt(index) as number;
      byte += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      index += code < 0x10000 ? 1 : 2;
      point += 1;
    }
    return byte;
  };
  return spans.map(([from, to]) => [byteOf(from), byteOf(to)] as const);
}
