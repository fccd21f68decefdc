import { TokenCache } from './cache/tokenCache.ts';
import { readTokenizerFile } from './tokenise/tokenizerFile.ts';

export interface ViewedRow {
  index: number;
  file: string;
  line?: number;
  row?: number;
  /** What the model reads, special tokens included. */
  text: string;
  tokens: { id: number; text: string; supervised: boolean }[];
}

/**
 * Rows of a cache as the model sees them. A token's text is what it adds to the text: where a character spans several
 * tokens, the last of them carries it, so that the texts joined are the whole.
 */
export function viewRows(cacheDir: string, tokenizerFile: string, from: number, count: number): ViewedRow[] {
  const cache = new TokenCache(cacheDir);
  const bytesOf = tokenBytes(tokenizerFile);
  try {
    const rows: ViewedRow[] = [];
    for (let index = from; index < Math.min(from + count, cache.manifest.examples); index++) {
      const { ids, supervised, file, place } = cache.example(index);
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      const tokens = Array.from(ids, (id, i) => {
        const text = decoder.decode(bytesOf(id), { stream: i < ids.length - 1 });
        return { id, text, supervised: supervised[i] === 1 };
      });
      rows.push({ index, file, ...place, text: tokens.map(({ text }) => text).join(''), tokens });
    }
    return rows;
  } finally {
    cache.close();
  }
}

const open = new Map<string, (id: number) => Uint8Array>();

/** Tokenizers take long to load; the last ones used stay. */
function tokenBytes(tokenizerFile: string): (id: number) => Uint8Array {
  const known = open.get(tokenizerFile);
  if (known !== undefined) return known;
  const bytesOf = byteReader(tokenizerFile);
  if (open.size > 3) open.clear();
  open.set(tokenizerFile, bytesOf);
  return bytesOf;
}

function byteReader(tokenizerFile: string): (id: number) => Uint8Array {
  const { byteLevel, tokenizer } = readTokenizerFile(tokenizerFile);
  if (byteLevel !== undefined) return byteLevel.bytesOf;
  return (id) => {
    const token = tokenizer.idToToken(id) ?? '';
    const byte = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
    return byte === undefined ? Buffer.from(token.replaceAll('▁', ' ')) : Uint8Array.of(parseInt(byte, 16));
  };
}
