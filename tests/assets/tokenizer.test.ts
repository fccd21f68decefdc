import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Tokenizer } from 'tokenizers';

const folder = 'assets/models/workshop-3m';
const tokenizer = Tokenizer.fromFile(`${folder}/tokenizer.json`);
const json = JSON.parse(readFileSync(`${folder}/tokenizer.json`, 'utf8')) as {
  model: { vocab: Record<string, number>; merges: [string, string][] };
  added_tokens: { id: number; content: string }[];
};

async function roundTrip(text: string): Promise<string> {
  return tokenizer.decode((await tokenizer.encode(text)).getIds(), false);
}

test('4,096 ids without a gap, special tokens last', () => {
  const ids = [...Object.values(json.model.vocab), ...json.added_tokens.map(({ id }) => id)];
  expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 4096 }, (_, i) => i));
  expect(tokenizer.getVocabSize()).toBe(4096);
});

test('every merge joins two entries to a third', () => {
  for (const [left, right] of json.model.merges) {
    for (const entry of [left, right, left + right]) expect(json.model.vocab[entry], entry).toBeDefined();
  }
});

test('all 256 bytes have an entry, and every text comes back', async () => {
  expect(Object.values(json.model.vocab).filter((id) => id < 256)).toHaveLength(256);
  // Every lead byte and every continuation byte of UTF-8.
  for (let first = 0; first < 0x110000; first += first < 0x1000 ? 0x80 : 0x1000) {
    const points = Array.from({ length: 0x80 }, (_, i) => first + i).filter((p) => p < 0xd800 || p > 0xdfff);
    const text = String.fromCodePoint(...points);
    if ((await roundTrip(text)) !== text) throw new Error(`U+${first.toString(16)} does not come back`);
  }
});

test('text comes back with its white space; digits stand alone; special tokens are one each', async () => {
  for (const text of [' a  b\n\n\tc ', 'Größe: 3½ “Zoll”', '名前 🙂\r\n', ''])
    expect(await roundTrip(text)).toBe(text);
  expect((await tokenizer.encode('2026')).getTokens()).toEqual(['2', '0', '2', '6']);
  for (const { content, id } of json.added_tokens)
    expect((await tokenizer.encode(content)).getIds()).toEqual([id]);
});

test('the samples take fewer than 1.6 tokens a word', async () => {
  const chats = readFileSync('assets/samples/chats.jsonl', 'utf8').trimEnd().split('\n');
  const texts = chats.flatMap((line) =>
    (JSON.parse(line) as { messages: { content: string }[] }).messages.map(({ content }) => content),
  );
  const encodings = await tokenizer.encodeBatch(texts);
  const tokens = encodings.reduce((sum, encoding) => sum + encoding.getLength(), 0);
  expect(tokens / texts.join(' ').split(/\s+/).length).toBeLessThan(1.6);
});
