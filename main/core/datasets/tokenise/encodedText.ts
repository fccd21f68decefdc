import type { JsEncoding } from 'tokenizers';
import { supervisedTokens, type Spans } from './supervisedTokens.ts';
import type { Word } from './wordTokenizer.ts';

/** The tokens of one text, wherever they are from. */
export interface EncodedText {
  readonly length: number;
  readonly first: number | undefined;
  readonly last: number | undefined;
  writeIds: (to: Int32Array, at: number) => void;
  /** Sets 1 from `at` on for tokens wholly within the spans (code points, sorted, end exclusive). */
  mark: (mask: Uint8Array, at: number, text: string, spans: Spans) => void;
}

/** A text as the library encoded it. */
export class EncodedWhole implements EncodedText {
  readonly length: number;
  private readonly ids: number[];
  private readonly encoding: JsEncoding;
  private readonly numBytes: Uint16Array | undefined;

  constructor(encoding: JsEncoding, numBytes: Uint16Array | undefined) {
    this.encoding = encoding;
    this.ids = encoding.getIds();
    this.length = this.ids.length;
    this.numBytes = numBytes;
  }

  get first(): number | undefined {
    return this.ids[0];
  }

  get last(): number | undefined {
    return this.ids.at(-1);
  }

  writeIds(to: Int32Array, at: number): void {
    to.set(this.ids, at);
  }

  mark(mask: Uint8Array, at: number, text: string, spans: Spans): void {
    mask.set(supervisedTokens(text, spans, this.ids, this.encoding, this.numBytes), at);
  }
}

/** A text of words that were looked up. */
export class EncodedWords implements EncodedText {
  readonly length: number;
  private readonly words: readonly Word[];
  private readonly numBytes: Uint16Array;

  constructor(words: readonly Word[], numBytes: Uint16Array) {
    this.words = words;
    this.numBytes = numBytes;
    let length = 0;
    for (const { ids } of words) length += ids.length;
    this.length = length;
  }

  get first(): number | undefined {
    return this.words[0]?.ids[0];
  }

  get last(): number | undefined {
    return this.words.at(-1)?.ids.at(-1);
  }

  writeIds(to: Int32Array, at: number): void {
    let next = at;
    for (const { ids } of this.words) for (const id of ids) to[next++] = id;
  }

  mark(mask: Uint8Array, at: number, text: string, spans: Spans): void {
    const units = toUnits(text, spans);
    let index = 0;
    let end = 0;
    let next = at;
    for (const { text: word, ids } of this.words) {
      const begin = end;
      end += word.length;
      const first = next;
      next += ids.length;
      while (index < units.length && (units[index] as Span)[1] <= begin) index += 1;
      const span = units[index];
      if (span === undefined) return;
      if (span[0] >= end) continue;
      if (span[0] <= begin && span[1] >= end) mask.fill(1, first, next);
      else this.markWithin(mask, first, { word, ids, begin }, units, index);
    }
  }

  /** A word that a span's edge cuts: its tokens by their bytes. */
  private markWithin(
    mask: Uint8Array,
    first: number,
    { word, ids, begin }: { word: string; ids: readonly number[]; begin: number },
    units: Spans,
    from: number,
  ): void {
    const byteAt = (unit: number) => Buffer.byteLength(word.slice(0, Math.max(0, unit - begin)));
    for (let i = from; i < units.length && (units[i] as Span)[0] < begin + word.length; i++) {
      const [start, stop] = units[i] as Span;
      const startByte = byteAt(start);
      const stopByte = byteAt(stop);
      let byte = 0;
      for (const [t, id] of ids.entries()) {
        const size = this.numBytes[id] as number;
        if (byte >= startByte && byte + size <= stopByte && size > 0) mask[first + t] = 1;
        byte += size;
      }
    }
  }
}

type Span = Spans[number];

/** Spans in code points as spans in UTF-16 units. */
function toUnits(text: string, spans: Spans): Spans {
  if (!/[\ud800-\udfff]/.test(text)) return spans;
  let unit = 0;
  let point = 0;
  const unitOf = (target: number): number => {
    for (; point < target && unit < text.length; point++)
      unit += (text.codePointAt(unit) as number) > 0xffff ? 2 : 1;
    return unit;
  };
  return spans.map(([from, to]) => [unitOf(from), unitOf(to)] as const);
}
