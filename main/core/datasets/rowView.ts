import { TokenCache } from './cache/tokenCache.ts';
import { openTokenTable } from './tokenise/tokenTable.ts';

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
  const { bytesOf } = openTokenTable(tokenizerFile);
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
