/**
 * Times an import, and its parts alone in the same run: `import.ts FILE --model DIR`. Prints one JSON object: rows,
 * tokens, seconds, processor seconds of all threads, the tokenizer library alone, the share of its speed that the
 * import reaches (by the clock, and by processor seconds, which other work on the machine disturbs less), peak memory,
 * and how busy the machine was.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
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

const loadBefore = loadavg()[0] ?? 0;
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
const cpuSeconds = cpuSecondsSince({ user: 0, system: 0 });
const seconds = (performance.now() - startedAtMs) / 1000;
const peakMemoryMb = Math.round(process.resourceUsage().maxRSS / 1024);
const { examples, tokens, supervisedTokens } = manifest;

const alone = await timeTokenizer();
const tokensPerSecond = tokens / seconds;
const round = (value: number, digits = 0) => Number(value.toFixed(digits));
process.stdout.write(
  `${JSON.stringify({
    rows: examples,
    bytes: stats.size,
    tokens,
    supervisedTokens,
    seconds: round(seconds, 2),
    cpuSeconds: round(cpuSeconds, 2),
    rowsPerSecond: round(examples / seconds),
    tokensPerSecond: round(tokensPerSecond),
    tokensPerCpuSecond: round(tokens / cpuSeconds),
    tokenizerTokensPerSecond: round(alone.perSecond),
    tokenizerTokensPerCpuSecond: round(alone.perCpuSecond),
    shareOfTokenizer: round(tokensPerSecond / alone.perSecond, 3),
    shareByCpuSeconds: round(tokens / cpuSeconds / alone.perCpuSecond, 3),
    peakMemoryMb,
    cacheBytes: manifest.sizeBytes,
    loadBefore: round(loadBefore, 1),
    loadAfter: round(loadavg()[0] ?? 0, 1),
  })}\n`,
);
rmSync(home, { recursive: true });

function cpuSecondsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** Encodes the texts of up to 5,000 of the same rows, nothing else: what the library does alone. */
async function timeTokenizer(): Promise<{ perSecond: number; perCpuSecond: number }> {
  const tokenizer = Tokenizer.fromFile(join(modelDir, 'tokenizer.json'));
  const cache = new TokenCache(cacheDir);
  const count = Math.min(examples, 5000);
  const ids = Array.from({ length: count }, (_, index) => Array.from(cache.example(index).ids));
  cache.close();
  const texts = await tokenizer.decodeBatch(ids, false);
  const begin = performance.now();
  const cpu = process.cpuUsage();
  let numTokens = 0;
  for (let from = 0; from < count; from += 512) {
    const encodings = await tokenizer.encodeBatch(texts.slice(from, from + 512), { addSpecialTokens: false });
    for (const encoding of encodings) numTokens += encoding.getLength();
  }
  return {
    perSecond: numTokens / ((performance.now() - begin) / 1000),
    perCpuSecond: numTokens / cpuSecondsSince(cpu),
  };
}
