/**
 * Peak memory of importing a large JSON Lines file: `importLarge.ts [--gib 5] [--line-mib 600] [--answer 620]`. The
 * file holds chats, no two the same, with answers of about the given length, and in its middle one line of the given
 * size; all is made in the system's temporary folder and removed. Exit code 1 where the peak is 1.5 GB or more, or
 * where a row is lost.
 */
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundled } from '../../main/core/bundled.ts';
import { runInThread } from '../../main/core/datasets/importThread.ts';
import { defaultReadOptions, defaultTokenOptions } from '../../main/core/datasets/options.ts';
import { hashFile } from '../../main/core/datasets/readers/source.ts';
import { makeWords, Sentences } from './sentences.ts';

const { values } = parseArgs({
  options: {
    gib: { type: 'string', default: '5' },
    'line-mib': { type: 'string', default: '600' },
    answer: { type: 'string', default: '620' },
  },
});
const targetBytes = Number(values.gib) * 2 ** 30;
const limitMb = 1500;
const folder = mkdtempSync(join(tmpdir(), 'tessera-large-'));
const path = join(folder, 'large.jsonl');

let numRows = 0;
const sentences = new Sentences(1, makeWords(1, 6000));
const numberWidth = 10;
const rowsOfBlock = 4000;
/** Chats that are written again and again, each time with other numbers: no two rows are the same. */
const rows = Array.from({ length: rowsOfBlock }, () => {
  const messages = [
    {
      role: 'user',
      content: `${'#'.repeat(numberWidth)} ${sentences.text(60 + sentences.logNormal(120, 0.7))}`,
    },
    { role: 'assistant', content: sentences.text(80 + sentences.logNormal(Number(values.answer), 0.7)) },
  ];
  return Buffer.from(`${JSON.stringify({ messages })}\n`);
});
const block = Buffer.concat(rows);
const numberAt: number[] = [];
for (let at = 0, i = 0; i < rowsOfBlock; at += rows[i]?.length ?? 0, i++)
  numberAt.push(at + (rows[i]?.indexOf('#') ?? 0));

const file = openSync(path, 'w');
const writeBlocks = (upTo: number) => {
  for (let written = statSync(path).size; written < upTo; written += block.length) {
    for (const at of numberAt) block.write(String(numRows++).padStart(numberWidth, '0'), at, 'latin1');
    writeSync(file, block);
  }
};
writeBlocks(targetBytes / 2);
writeSync(file, '{"text":"');
for (let i = 0; i < Number(values['line-mib']); i++) writeSync(file, Buffer.alloc(1 << 20, 'x'));
writeSync(file, '"}\n');
writeBlocks(statSync(path).size + targetBytes / 2);
closeSync(file);

const { size: sizeBytes, mtimeMs: modifiedMs } = statSync(path);
const startedAtMs = performance.now();
const sha256 = await hashFile(path);
const manifest = await runInThread(
  {
    files: [{ path, sizeBytes, modifiedMs, sha256 }],
    modelDir: bundled().model,
    read: defaultReadOptions,
    tokens: defaultTokenOptions,
    strict: false,
    cacheDir: join(folder, 'cache'),
    about: {
      key: 'bench',
      hashes: { dataset: sha256, template: '', tokenizer: '', options: '' },
      options: {},
      model: '',
    },
  },
  () => undefined,
  new AbortController().signal,
);
const seconds = (performance.now() - startedAtMs) / 1000;
const peakMemoryMb = Math.round(process.resourceUsage().maxRSS / 1024);
const found = {
  bytes: sizeBytes,
  rows: manifest.examples,
  skipped: manifest.numSkipped,
  tokens: manifest.tokens,
};
const cpu = process.cpuUsage();
const cpuSeconds = Math.round((cpu.user + cpu.system) / 1e6);
process.stdout.write(
  `${JSON.stringify({ ...found, seconds: Math.round(seconds), cpuSeconds, peakMemoryMb, limitMb, load: loadavg()[0] })}\n`,
);
rmSync(folder, { recursive: true });
process.exitCode =
  peakMemoryMb < limitMb && manifest.examples === numRows && manifest.numSkipped === 1 ? 0 : 1;
