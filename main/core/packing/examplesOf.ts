import { exampleKinds, TokenCache } from '../datasets/cache/tokenCache.ts';
import type { Examples } from './pieces.ts';

/** What packing needs to know of a token cache: lengths, where learning begins, and which examples may be split. */
export function examplesOf(cacheDir: string): Required<Examples> {
  const cache = new TokenCache(cacheDir);
  try {
    const text = exampleKinds.indexOf('text');
    const isText = cache.kinds().map((kind) => Number(kind === text));
    return { lengths: cache.lengths(), firstTarget: cache.firstTargets(), isText };
  } finally {
    cache.close();
  }
}
