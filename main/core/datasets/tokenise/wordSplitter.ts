/**
 * How a byte-level BPE tokenizer cuts text into words before it merges. Each word's tokens depend on the word alone,
 * so whoever cuts as the library does may look words up instead of merging them again.
 */

/** The parts of a `tokenizer.json` that say how text is cut. */
export interface TokenizerJson {
  added_tokens?: AddedToken[];
  normalizer?: { type: string } | null;
  pre_tokenizer?: PreTokenizerJson | null;
  model?: ModelJson;
}

export interface AddedToken {
  id: number;
  content: string;
  special: boolean;
  single_word?: boolean;
  lstrip?: boolean;
  rstrip?: boolean;
}

interface PreTokenizerJson {
  type: string;
  pretokenizers?: PreTokenizerJson[];
  pattern?: { Regex?: string };
  behavior?: string;
  invert?: boolean;
  add_prefix_space?: boolean;
  use_regex?: boolean;
  trim_offsets?: boolean;
}

interface ModelJson {
  type?: string;
  vocab?: unknown;
  dropout?: number | null;
  unk_token?: string | null;
  continuing_subword_prefix?: string | null;
  end_of_word_suffix?: string | null;
}

/** What GPT-2 splits by, the library's own choice where a tokenizer names no pattern. */
const gpt2Pattern = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/**
 * Characters of which every edition of Unicode since 12 says the same: letters, marks, digits, white space. Texts with
 * others are left to the library, which may know another edition than JavaScript.
 */
const settled =
  /^[\0-\u036f\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u052f\u0531-\u0556\u0559-\u0586\u0591-\u05c7\u05d0-\u05ea\u0600-\u06ff\u0900-\u097f\u0e01-\u0e3a\u0e3f-\u0e5b\u1e00-\u1eff\u2000-\u2064\u20a0-\u20bf\u2100-\u218b\u2190-\u2bff\u3000-\u303f\u3041-\u3096\u3099-\u30ff\u3131-\u318e\u3400-\u4db5\u4e00-\u9fef\uac00-\ud7a3\ufe00-\ufe0f\ufeff\uff01-\uff9f\u{1f000}-\u{1faff}\u{20000}-\u{2a6d6}]*$/u;

export class WordSplitter {
  private readonly words: RegExp;
  private readonly added: RegExp | undefined;
  private readonly isComposed: boolean;

  private constructor(words: RegExp, added: RegExp | undefined, isComposed: boolean) {
    this.words = words;
    this.added = added;
    this.isComposed = isComposed;
  }

  /** @returns undefined for a tokenizer that cuts otherwise, or whose words do not stand alone */
  static of({
    added_tokens: added = [],
    normalizer,
    pre_tokenizer,
    model,
  }: TokenizerJson): WordSplitter | undefined {
    const isComposed = normalizer?.type === 'NFC';
    if (!isComposed && normalizer !== null && normalizer !== undefined) return undefined;
    if (model === undefined || !mergesWords(model)) return undefined;
    if (
      added.some(
        ({ content, single_word, lstrip, rstrip }) => single_word || lstrip || rstrip || content === '',
      )
    )
      return undefined;
    const pattern = patternOf(pre_tokenizer ?? undefined);
    const words = pattern === undefined ? undefined : toJsPattern(pattern);
    if (words === undefined) return undefined;
    const contents = added.map(({ content }) => content).sort((a, b) => b.length - a.length);
    const addedTokens = contents
      .map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`))
      .join('|');
    return new WordSplitter(
      words,
      contents.length === 0 ? undefined : new RegExp(`(${addedTokens})`, 'u'),
      isComposed,
    );
  }

  /**
   * The text in words and added tokens, in order and without gaps.
   * @returns undefined where only the library can tell
   */
  split(text: string): string[] | undefined {
    if (!settled.test(text) || (this.isComposed && text !== text.normalize('NFC'))) return undefined;
    if (this.added === undefined) return this.splitPlain(text);
    const all: string[] = [];
    // Splitting by a group gives plain texts at even places, added tokens between them.
    for (const [index, part] of text.split(this.added).entries()) {
      if (part === '') continue;
      if (index % 2 === 1) all.push(part);
      else {
        const words = this.splitPlain(part);
        if (words === undefined) return undefined;
        for (const word of words) all.push(word);
      }
    }
    return all;
  }

  /** Whether the word, standing alone, is cut no further: only then does the library give its tokens. */
  standsAlone(word: string): boolean {
    return this.split(word)?.length === 1;
  }

  private splitPlain(text: string): string[] | undefined {
    if (text === '') return [];
    const words: string[] = text.match(this.words) ?? [];
    let numChars = 0;
    for (const word of words) numChars += word.length;
    return numChars === text.length ? words : undefined;
  }
}

/** Whether a word's tokens are its bytes, merged: none is unknown or written otherwise within a word. */
export function mergesWords(model: ModelJson): boolean {
  const { type, dropout, unk_token, continuing_subword_prefix, end_of_word_suffix } = model;
  return type === 'BPE' && !dropout && !unk_token && !continuing_subword_prefix && !end_of_word_suffix;
}

/** The one pattern that cuts, where the tokenizer is byte-level. */
function patternOf(json: PreTokenizerJson | undefined): string | undefined {
  const steps = json?.type === 'Sequence' ? (json.pretokenizers ?? []) : [json];
  const last = steps.at(-1);
  if (last?.type !== 'ByteLevel' || last.add_prefix_space !== false) return undefined;
  if (steps.length === 1) return last.use_regex === false ? undefined : gpt2Pattern;
  const [split] = steps;
  if (steps.length !== 2 || split?.type !== 'Split' || last.use_regex !== false) return undefined;
  return split.behavior === 'Isolated' && split.invert !== true ? split.pattern?.Regex : undefined;
}

/** Pieces of Oniguruma's syntax that mean the same in JavaScript's, and the two that are written otherwise. */
const knownSyntax =
  /\(\?i:'s\|'t\|'re\|'ve\|'m\|'ll\|'d\)|\\[rntsS]|\\p\{(?:L|N|M|P|S|Z|Lu|Ll|Lt|Lm|Lo|Nd)\}|\(\?[!:]|[|()?+*]|\{\d+(?:,\d*)?\}|\[\^?|\]|[A-Za-z0-9' ]/y;

/** @returns undefined where a part of the pattern could mean something else, or may match nothing at all */
function toJsPattern(pattern: string): RegExp | undefined {
  if (/[?*+]\+|\d\}\+/.test(pattern)) return undefined;
  let js = '';
  for (let at = 0; at < pattern.length; at += knownSyntax.lastIndex - at) {
    knownSyntax.lastIndex = at;
    const found = knownSyntax.exec(pattern)?.[0];
    if (found === undefined) return undefined;
    js +=
      found === '\\s' ? String.raw`\p{White_Space}` : found === '\\S' ? String.raw`\P{White_Space}` : found;
  }
  try {
    const words = new RegExp(js, 'gu');
    return ''.match(words) === null ? words : undefined;
  } catch {
    return undefined;
  }
}
