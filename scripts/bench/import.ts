/**
 * Times an import, and its parts alone in the same run: `import.ts FILE --model DIR`. Prints one JSON object: rows,
 * tokens, seconds, processor seconds of all threads, the tokenizer library alone, the share of its speed that the
 * import reaches (by the clock, and by processor seconds, which other work on the machine disturbs less), peak memory, times of
 * reopening, jumping and searching, and how busy the machine was.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Tokenizer } from 'tokenizers';
import { TokenCache } from '../../main/core/datasets/cache/tokenCache.ts';
import { previewRows } from '../../main/core/datasets/browse.ts';
import { runInThread } from '../../main/core/datasets/importThread.ts';
import { bundled } from '../../main/core/bundled.ts';
import { defaultReadOptions, defaultTokenOptions } from '../../main/core/datasets/options.ts';
import { hashFile } from '../../main/core/datasets/readers/source.ts';
import { searchExamples } from '../../main/core/datasets/searchExamples.ts';
import { openTokenTable } from '../../main/core/datasets/tokenise/tokenTable.ts';
import { Random } from '../../main/core/random.ts';

const { positionals, values } = parseArgs({ allowPositionals: true, options: { model: { type: 'string' } } });
const [path] = positionals;
if (path === undefined) throw new Error('usage: import.ts FILE [--model DIR]');
const modelDir = values.model ?? bundled().model;
const home = mkdtempSync(join(tmpdir(), 'tessera-bench-'));
const cacheDir = join(home, 'cache');

const round = (value: number, digits = 0) => Number(value.toFixed(digits));
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

const reading = await timeReading();
const alone = await timeTokenizer();
const tokensPerSecond = tokens / seconds;
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
    ...reading,
    loadBefore: round(loadBefore, 1),
    loadAfter: round(loadavg()[0] ?? 0, 1),
  })}\n`,
);
rmSync(home, { recursive: true });

function cpuSecondsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** Milliseconds to open the cache, to read 50 rows anywhere (median and worst of 200), to search a word in all rows. */
async function timeReading() {
  const table = openTokenTable(join(modelDir, 'tokenizer.json'));
  let begin = performance.now();
  const lap = () => {
    const ms = performance.now() - begin;
    begin = performance.now();
    return ms;
  };
  const cache = new TokenCache(cacheDir);
  cache.lengths();
  const reopenMs = lap();
  const random = new Random(3);
  const jumps = Array.from({ length: 200 }, () => {
    const from = random.below(Math.max(1, examples - 50));
    previewRows(
      cache,
      table,
      Array.from({ length: Math.min(50, examples) }, (_, i) => from + i),
    );
    return lap();
  }).sort((a, b) => a - b);
  const search = async (text: string) => {
    lap();
    let firstMs = 0;
    let matches = 0;
    const count = (found: { matches: number[] }) => {
      if (found.matches.length > 0 && matches === 0) firstMs = performance.now() - begin;
      matches += found.matches.length;
    };
    await searchExamples(cache, table, text, count, new AbortController().signal);
    return { text, matches, firstMs: round(firstMs), ms: round(lap()) };
  };
  const searches = [await search('overmountain'), await search('the'), await search('École')];
  cache.close();
  return {
    reopenMs: round(reopenMs, 1),
    jumpMs: { median: round(jumps[100] ?? 0, 1), worst: round(jumps[199] ?? 0, 1) },
    searches,
  };
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
