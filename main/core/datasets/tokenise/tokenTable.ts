import { readTokenizerFile } from './tokenizerFile.ts';

/** What a token is, by its id. */
export interface TokenTable {
  /** The bytes of UTF-8 that it adds to the text. */
  bytesOf: (id: number) => Uint8Array;
  /** Whether the vocabulary holds it by name (`<|im_end|>`, `<think>`). */
  isAdded: (id: number) => boolean;
}

const numKept = 4;
const tables = new Map<string, TokenTable>();

/** Tokenizers take long to load; the last ones used stay. */
export function openTokenTable(tokenizerFile: string): TokenTable {
  const known = tables.get(tokenizerFile);
  if (known !== undefined) return known;
  const { byteLevel, tokenizer, addedIds } = readTokenizerFile(tokenizerFile);
  const bytesOf = byteLevel?.bytesOf ?? ((id: number) => bytesOfPiece(tokenizer.idToToken(id) ?? ''));
  const table = { bytesOf, isAdded: (id: number) => addedIds.has(id) };
  if (tables.size >= numKept) tables.clear();
  tables.set(tokenizerFile, table);
  return table;
}

/** SentencePiece's writing: `▁` for a space, `<0xE4>` for a byte. */
function bytesOfPiece(token: string): Uint8Array {
  const byte = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
  return byte === undefined ? Buffer.from(token.replaceAll('▁', ' ')) : Uint8Array.of(parseInt(byte, 16));
}
