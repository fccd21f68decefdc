/**
 * Strings that know where their characters came from. A plain JavaScript string has no known origin;
 * a Tagged one carries runs of origins, kept through every string operation of the template.
 */

/**
 * `runs` holds pairs: end offset in UTF-16 units, origin. Origins ascend by end and the last end is the
 * text's length. Origin 0 is unknown; see origins.ts for the others.
 */
export class Tagged {
  readonly text: string;
  readonly runs: readonly number[];
  /** Python's Markup: joining it with a plain string escapes the plain one. */
  readonly isMarkup: boolean;

  constructor(text: string, runs: readonly number[], isMarkup = false) {
    this.text = text;
    this.runs = runs;
    this.isMarkup = isMarkup;
  }
}

export type Str = string | Tagged;

export function isStr(value: unknown): value is Str {
  return typeof value === 'string' || value instanceof Tagged;
}

export function textOf(value: Str): string {
  return typeof value === 'string' ? value : value.text;
}

export function isMarkup(value: unknown): value is Tagged {
  return value instanceof Tagged && value.isMarkup;
}

export function asMarkup(value: Str): Tagged {
  if (typeof value === 'string') return new Tagged(value, value === '' ? [] : [value.length, 0], true);
  return value.isMarkup ? value : new Tagged(value.text, value.runs, true);
}

/** The same text and origins, no longer Markup: Python's `str(markup)`. */
export function asPlain(value: Str): Str {
  return isMarkup(value) ? new Tagged(value.text, value.runs) : value;
}

/** The origin of the character at `index` (UTF-16 units), 0 where there is none. */
export function originAt(value: Str, index: number): number {
  if (typeof value === 'string') return 0;
  for (let i = 0; i < value.runs.length; i += 2) {
    if ((value.runs[i] ?? 0) > index) return value.runs[i + 1] ?? 0;
  }
  return 0;
}

/** Joins pieces and merges neighbouring runs of one origin. */
export class StrBuilder {
  #text = '';
  #runs: number[] = [];
  #isTagged = false;

  get length(): number {
    return this.#text.length;
  }

  /** Appends; characters of unknown origin get `fallback`. */
  add(value: Str, fallback = 0): this {
    if (typeof value === 'string') return this.addText(value, fallback);
    let start = 0;
    for (let i = 0; i < value.runs.length; i += 2) {
      const end = value.runs[i] ?? 0;
      this.#push(end - start, value.runs[i + 1] || fallback);
      start = end;
    }
    this.#text += value.text;
    return this;
  }

  addText(text: string, origin: number): this {
    if (text === '') return this;
    this.#push(text.length, origin);
    this.#text += text;
    return this;
  }

  #push(length: number, origin: number): void {
    if (length === 0) return;
    if (origin !== 0) this.#isTagged = true;
    const runs = this.#runs;
    const last = runs.length - 1;
    const end = (runs[last - 1] ?? 0) + length;
    if (runs[last] === origin) runs[last - 1] = end;
    else runs.push(end, origin);
  }

  build(isMarkupResult = false): Str {
    if (isMarkupResult) return new Tagged(this.#text, this.#runs, true);
    return this.#isTagged ? new Tagged(this.#text, this.#runs) : this.#text;
  }
}

/** Characters [start, end) in UTF-16 units. */
export function sliceUnits(value: Str, start: number, end: number): Str {
  if (typeof value === 'string') return value.slice(start, end);
  if (start <= 0 && end >= value.text.length) return value;
  if (start >= end) return value.isMarkup ? asMarkup('') : '';
  const runs: number[] = [];
  for (let i = 0; i < value.runs.length; i += 2) {
    const runEnd = value.runs[i] ?? 0;
    if (runEnd <= start) continue;
    runs.push(Math.min(runEnd, end) - start, value.runs[i + 1] ?? 0);
    if (runEnd >= end) break;
  }
  return new Tagged(value.text.slice(start, end), runs, value.isMarkup);
}

const HTML_ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
};

/** markupsafe.escape: Markup stays as it is. */
export function escapeHtml(value: Str): Tagged {
  if (isMarkup(value)) return value;
  return asMarkup(mapRuns(value, (text) => text.replace(/[&<>'"]/g, (c) => HTML_ESCAPES[c] ?? c)));
}

/** Python's `a + b` of two strings. */
export function concat(a: Str, b: Str): Str {
  if (typeof a === 'string' && typeof b === 'string') return a + b;
  if (isMarkup(a) || isMarkup(b)) {
    return new StrBuilder().add(escapeHtml(a)).add(escapeHtml(b)).build(true);
  }
  return new StrBuilder().add(a).add(b).build();
}

/** Applies `change` to each run alone: right for changes that look at single characters. */
export function mapRuns(value: Str, change: (text: string) => string): Str {
  if (typeof value === 'string') return change(value);
  const builder = new StrBuilder();
  let start = 0;
  for (let i = 0; i < value.runs.length; i += 2) {
    const end = value.runs[i] ?? 0;
    builder.addText(change(value.text.slice(start, end)), value.runs[i + 1] ?? 0);
    start = end;
  }
  return builder.build(value.isMarkup);
}

export function joinStr(separator: Str, items: readonly Str[]): Str {
  const builder = new StrBuilder();
  const markup = isMarkup(separator);
  items.forEach((item, i) => {
    if (i > 0) builder.add(separator);
    builder.add(markup ? escapeHtml(item) : item);
  });
  return builder.build(markup);
}

const SURROGATE = /[\ud800-\udfff]/;

/** Length in code points. A lone surrogate counts as one, as in Python. */
export function lengthInPoints(text: string): number {
  if (!SURROGATE.test(text)) return text.length;
  let n = 0;
  for (const _ of text) n++;
  return n;
}

/** UTF-16 offsets of every code point and of the end, or null where offsets and code points agree. */
export function pointOffsets(text: string): number[] | null {
  if (!SURROGATE.test(text)) return null;
  const offsets: number[] = [];
  let at = 0;
  for (const point of text) {
    offsets.push(at);
    at += point.length;
  }
  offsets.push(at);
  return offsets;
}

/** Code point index of a UTF-16 offset. */
export function pointIndex(text: string, unitOffset: number): number {
  return lengthInPoints(text.slice(0, unitOffset));
}

/** One Str per code point. */
export function points(value: Str): Str[] {
  if (typeof value === 'string') return Array.from(value);
  const result: Str[] = [];
  let at = 0;
  for (const point of value.text) {
    result.push(sliceUnits(value, at, at + point.length));
    at += point.length;
  }
  return result;
}
