import { TesseraError } from '../../contract/errors.ts';
import type { PackedExamples } from '../../contract/packing.ts';
import { TokenCache } from '../datasets/cache/tokenCache.ts';

/** Stretches beyond this are no picture: 128 MB of them. */
const mostFlips = 32_000_000;

/**
 * Reads of a token cache where supervision changes within each example, and which file each comes from.
 * @throws {TesseraError} `tooManyStretches`
 */
export function packedExamples(cacheDir: string): PackedExamples {
  const cache = new TokenCache(cacheDir);
  try {
    return { ...readFlips(cache), ...readSources(cache) };
  } finally {
    cache.close();
  }
}

function readFlips(cache: TokenCache): Pick<PackedExamples, 'flips' | 'flipOffsets'> {
  const flipOffsets = new Int32Array(cache.manifest.examples + 1);
  let flips = new Int32Array(1024);
  let count = 0;
  let example = 0;
  for (const part of cache.parts()) {
    const { offsets, supervised } = part;
    for (let i = 1; i < offsets.length; i++) {
      const [begin, end] = [offsets[i - 1] ?? 0, offsets[i] ?? 0];
      // `indexOf` looks at many bytes at once: masks are few long stretches.
      for (let wanted = 1, at = begin; ; wanted = 1 - wanted) {
        at = supervised.indexOf(wanted, at);
        if (at < 0 || at >= end) break;
        if (count === flips.length) flips = grown(flips);
        flips[count++] = at - begin;
      }
      flipOffsets[++example] = count;
    }
  }
  return { flips: flips.slice(0, count), flipOffsets };
}

function grown(flips: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  if (flips.length >= mostFlips)
    throw new TesseraError(
      'tooManyStretches',
      `supervision changes more than ${mostFlips.toLocaleString('en')} times in this dataset`,
      'The picture is drawn without it; an example’s own page shows its tokens.',
    );
  const larger = new Int32Array(2 * flips.length);
  larger.set(flips);
  return larger;
}

function readSources(cache: TokenCache): Pick<PackedExamples, 'source' | 'sources'> {
  const files = cache.sourceFiles();
  const counts = cache.manifest.files.map(({ path }) => ({ path, examples: 0 }));
  for (const file of files) {
    const found = counts[file];
    if (found) found.examples += 1;
  }
  const order = [...counts.keys()].sort((a, b) => (counts[b]?.examples ?? 0) - (counts[a]?.examples ?? 0));
  const rank = new Int32Array(counts.length);
  for (const [at, file] of order.entries()) rank[file] = at;
  return {
    source: files.map((file) => rank[file] ?? 0),
    sources: order.flatMap((file) => counts[file] ?? []),
  };
}
