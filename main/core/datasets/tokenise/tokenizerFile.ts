import { readFileSync } from 'node:fs';

/** What a `tokenizer.json` says beyond what the library tells. */
export interface TokenizerFile {
  /** Texts of the special tokens, longest first. */
  specialTexts: string[];
  /** Absent for tokenizers that are not byte-level. */
  byteLevel: ByteLevelVocabulary | undefined;
}

/** A vocabulary of bytes, written GPT-2's way: one printable character for each byte. */
export interface ByteLevelVocabulary {
  /** Bytes of UTF-8 by token id; 0 for ids without a token. */
  numBytes: Uint16Array;
  bytesOf: (id: number) => Uint8Array;
}

interface AddedToken {
  id: number;
  content: string;
  special: boolean;
}

export function readTokenizerFile(path: string): TokenizerFile {
  const { added_tokens: added = [], model } = JSON.parse(readFileSync(path, 'utf8')) as {
    added_tokens?: AddedToken[];
    model?: { vocab?: unknown };
  };
  const specials = added.filter(({ special }) => special).map(({ content }) => content);
  return {
    specialTexts: specials.sort((a, b) => b.length - a.length),
    byteLevel: readByteLevel(model?.vocab, added),
  };
}

/** Added tokens are written as themselves, whatever characters they have. */
function readByteLevel(vocab: unknown, added: AddedToken[]): ByteLevelVocabulary | undefined {
  if (typeof vocab !== 'object' || vocab === null || !('Ġ' in vocab)) return undefined;
  const tokens: string[] = [];
  for (const [token, id] of Object.entries(vocab as Record<string, number>)) tokens[id] = token;
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
