import { readFileSync } from 'node:fs';
import { Tokenizer } from 'tokenizers';
import { mergesWords, WordSplitter, type AddedToken, type TokenizerJson } from './wordSplitter.ts';

/** What a `tokenizer.json` says beyond what the library tells. */
export interface TokenizerFile {
  tokenizer: Tokenizer;
  /** Texts of the special tokens, longest first. */
  specialTexts: string[];
  /** Absent for tokenizers that are not byte-level. */
  byteLevel: ByteLevelVocabulary | undefined;
  /** Its bytes by token id, where tokens with as many bytes as the text are the text. */
  numBytes: Uint16Array | undefined;
  /** Tokens that the vocabulary holds by name, special ones and others. */
  addedIds: ReadonlySet<number>;
  /** Absent where words do not stand alone. */
  splitter: WordSplitter | undefined;
}

/** A vocabulary of bytes, written GPT-2's way: one printable character for each byte. */
export interface ByteLevelVocabulary {
  /** Bytes of UTF-8 by token id; 0 for ids without a token. */
  numBytes: Uint16Array;
  bytesOf: (id: number) => Uint8Array;
}

/**
 * Opens a tokenizer whose offsets tell where every token lies: with `trim_offsets`, which changes no id, tokens would
 * begin after their white space, and those of white space alone would lie nowhere.
 * @throws what the library or the JSON reader says of a damaged file
 */
export function readTokenizerFile(path: string): TokenizerFile {
  const text = readFileSync(path, 'utf8');
  const tokenizer = Tokenizer.fromString(text.replace(/("trim_offsets"\s*:\s*)true/g, '$1false'));
  tokenizer.disableTruncation();
  tokenizer.disablePadding();
  const json = JSON.parse(text) as TokenizerJson;
  const { added_tokens: added = [], model } = json;
  const specials = added.filter(({ special }) => special).map(({ content }) => content);
  const byteLevel = isByteLevel(json) ? readByteLevel(model?.vocab, added) : undefined;
  return {
    tokenizer,
    specialTexts: specials.sort((a, b) => b.length - a.length),
    byteLevel,
    numBytes: keepsText(json) ? byteLevel?.numBytes : undefined,
    addedIds: new Set(added.map((token) => token.id)),
    splitter: WordSplitter.of(json),
  };
}

const steps = ({ pre_tokenizer: pre }: TokenizerJson) =>
  pre?.type === 'Sequence' ? (pre.pretokenizers ?? []) : [pre];

function isByteLevel(json: TokenizerJson): boolean {
  return steps(json).some((step) => step?.type === 'ByteLevel');
}

/** Nothing is changed, put before it or stood in for; that it is composed (NFC) `supervisedTokens` sees by itself. */
function keepsText(json: TokenizerJson): boolean {
  const { normalizer, model } = json;
  if (model === undefined || !mergesWords(model)) return false;
  const isChanged = normalizer !== null && normalizer !== undefined && normalizer.type !== 'NFC';
  const adds = steps(json).some((step) => step?.type === 'Metaspace' || step?.add_prefix_space === true);
  return !isChanged && !adds;
}

/** Added tokens are written as themselves, whatever characters they have. */
function readByteLevel(vocab: unknown, added: AddedToken[]): ByteLevelVocabulary | undefined {
  if (typeof vocab !== 'object' || vocab === null || !('Ġ' in vocab)) return undefined;
  const ids = vocab as Record<string, number>;
  const tokens: string[] = [];
  for (const token in ids) tokens[ids[token] ?? 0] = token;
  const addedById = new Map(added.map(({ id, content }) => [id, Buffer.from(content)]));
  const numBytes = new Uint16Array(Math.max(tokens.length, ...added.map(({ id }) => id + 1)));
  for (const [id, token] of tokens.entries()) numBytes[id] = token.length;
  for (const [id, { length }] of addedById) numBytes[id] = length;
  const byteOf = new Map(byteAlphabet().map((char, byte) => [char, byte]));
  return {
    numBytes,
    bytesOf: (id) => addedById.get(id) ?? Uint8Array.from(tokens[id] ?? '', (char) => byteOf.get(char) ?? 0),
  };
}

/** Printable bytes stand for themselves, the others for U+0100 and on, in order. */
function byteAlphabet(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(isPrintable ? byte : next++);
  });
}
