/**
 * Times an import, and its parts alone in the same run: `import.ts FILE --model DIR`. Prints one JSON
 * object: rows, tokens, seconds, processor seconds of all threads, the tokenizer alone, the share of its speed that the import reaches, peak memory.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Tokenizer } from 'tokenizers';
import { TokenCache } from '../../main/core/datasets/cache/tokenCache.ts';
import { runInThread } from '../../main/core/datasets/importThread.ts';
import { bundled } from '../../main/core/bundled.ts';
import { defaultReadOptions, defaultTokenOptions } from '../../main/core/datasets/options.ts';
import { hashFile } from '../../main/core/datasets/readers/source.ts';

const { positionals, values } = parseArgs({ allowPositionals: true, options: { model: { type: 'string' } } });
const [path] = positionals;
if (path === undefined) throw new Error('usage: import.ts FILE [--model DIR]');
const modelDir = values.model ?? bundled().model;
const home = mkdtempSync(join(tmpdir(), 'tessera-bench-'));
const cacheDir = join(home, 'cache');

const startedAtMs = performance.now();
const stats = statSync(path);
const sha256 = await hashFile(path);
const hashes = { dataset: sha256, template: '', tokenizer: '', options: '' };
const manifest = await runInThread(
  {
    files: [{ path, sizeBytes: stats.size, modifiedMs: stats.mtimeMs, sha256 }],
    modelDir,
    read: defaultReadOptions,
    tokens: defaultTokenOptions,
    strict: false,
    cacheDir,
    about: { key: 'bench', hashes, options: {}, model: modelDir },
  },
  () => undefined,
  new AbortController().signal,
);
const cpu = process.cpuUsage();
const seconds = (performance.now() - startedAtMs) / 1000;
const peakMemoryMb = Math.round(process.resourceUsage().maxRSS / 1024);
const { examples, tokens, supervisedTokens } = manifest;

const tokenizerTokensPerSecond = await timeTokenizer();
const tokensPerSecond = tokens / seconds;
const round = (value: number, digits = 0) => Number(value.toFixed(digits));
process.stdout.write(
  `${JSON.stringify({
    rows: examples,
    bytes: stats.size,
    tokens,
    supervisedTokens,
    seconds: round(seconds, 2),
    cpuSeconds: round((cpu.user + cpu.system) / 1e6, 2),
    rowsPerSecond: round(examples / seconds),
    tokensPerSecond: round(tokensPerSecond),
    tokenizerTokensPerSecond: round(tokenizerTokensPerSecond),
    shareOfTokenizer: round(tokensPerSecond / tokenizerTokensPerSecond, 3),
    peakMemoryMb,
    cacheBytes: manifest.sizeBytes,
  })}\n`,
);
rmSync(home, { recursive: true });

/** Encodes the texts of up to 5,000 of the same rows, nothing else: what the library does alone. */
async function timeTokenizer(): Promise<number> {
  const tokenizer = Tokenizer.fromFile(join(modelDir, 'tokenizer.json'));
  const cache = new TokenCache(cacheDir);
  const count = Math.min(examples, 5000);
  const ids = Array.from({ length: count }, (_, index) => Array.from(cache.example(index).ids));
  cache.close();
  const texts = await tokenizer.decodeBatch(ids, false);
  const begin = performance.now();
  let numTokens = 0;
  for (let from = 0; from < count; from += 512) {
    const encodings = await tokenizer.encodeBatch(texts.slice(from, from + 512), { addSpecialTokens: false });
    for (const encoding of encodings) numTokens += encoding.getLength();
  }
  return numTokens / ((performance.now() - begin) / 1000);
}
