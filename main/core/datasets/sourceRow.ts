import { whyNames, type ExampleOrigins } from '../../contract/datasets.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { CachedExample } from './cache/tokenCache.ts';
import type { DatasetSource } from './datasets.ts';
import { readModelFolder } from './modelFolder.ts';
import { placeOf } from './problems.ts';
import { readFileRows } from './readers/readFile.ts';
import type { ReadItem } from './readers/rows.ts';
import { sniffFile } from './readers/sniff.ts';
import type { Example } from './schema/normalise.ts';
import type { OriginRun } from './template/supervision.ts';
import { toJson } from './template/print.ts';
import { textOf } from './template/taggedString.ts';
import { toExample } from './toExample.ts';
import { ExampleRenderer } from './tokenise/renderExample.ts';

/** The row of a file that became an example, as the reader finds it now. @throws {TesseraError} `sourceChanged` */
export async function readSourceItem(
  source: DatasetSource,
  { file, place }: CachedExample,
  signal: AbortSignal,
): Promise<ReadItem> {
  const sniffed = await sniffFile(file);
  if (!('problem' in sniffed)) {
    const format = source.read.fileFormat ?? sniffed.format;
    const { compression } = sniffed;
    const { limits } = source.read;
    const request = { path: file, format, compression, limits, onBytes: () => undefined, signal };
    for await (const items of readFileRows(request)) {
      const found = items.find(({ at }) => placeOf(at) === placeOf(place));
      if (found !== undefined) return found;
    }
  }
  throw changed(file);
}

const readable = {
  indent: '  ',
  itemSeparator: ',',
  keySeparator: ': ',
  ensureAscii: false,
  sortKeys: false,
};

/** The row as JSON, for people to read. */
export function itemJson(item: ReadItem): string {
  if ('problem' in item) return item.problem;
  return 'json' in item ? item.json : textOf(toJson(item.value, readable));
}

/**
 * Which message each token of an example belongs to and what it is there, from the same render that made it.
 * @param tokenBytes bytes of each token
 * @throws {TesseraError} `sourceChanged`; `noOrigins` where the tokenizer changes the text, so that bytes say nothing
 */
export function traceTokens(
  item: ReadItem,
  source: DatasetSource,
  cached: CachedExample,
  tokenBytes: Uint8Array[],
): ExampleOrigins {
  const { example } = toExample(item, source.read, () => undefined);
  const renderer = new ExampleRenderer(readModelFolder(source.modelDir), source.tokens);
  const { text, runs } = example.kind === 'chat' ? renderer.trace(example) : plainRuns(example);
  const joined = Buffer.concat(tokenBytes);
  // Completions and texts may have a BOS before them.
  const begin = joined.indexOf(Buffer.from(text));
  if (begin < 0 || (example.kind === 'chat' && joined.length !== Buffer.byteLength(text))) {
    if (joined.toString().normalize('NFC') !== text.normalize('NFC')) throw changed(cached.file);
    const hint = 'The tokens and their supervision are as they will be trained.';
    throw new TesseraError(
      'noOrigins',
      'the tokenizer rewrites this text, so its parts cannot be told',
      hint,
    );
  }
  return assign(tokenBytes, begin, toByteRuns(text, runs), (index) => roleIn(example, index));
}

type Run = OriginRun;

function plainRuns(example: Exclude<Example, { kind: 'chat' }>): { text: string; runs: Run[] } {
  if (example.kind === 'text')
    return { text: example.text, runs: [{ start: 0, end: Infinity, why: 'other', message: 0 }] };
  const { prompt, completion } = example;
  const end = Array.from(prompt).length;
  const runs: Run[] = [
    { start: 0, end, why: 'user', message: 0 },
    { start: end, end: Infinity, why: 'assistant', message: 1 },
  ];
  return { text: prompt + completion, runs };
}

function roleIn(example: Example, message: number | undefined): string {
  if (message === undefined) return 'template';
  if (example.kind === 'text') return 'text';
  if (example.kind === 'completion') return message === 0 ? 'prompt' : 'completion';
  const role = example.messages[message]?.get('role');
  return typeof role === 'string' ? role : 'message';
}

/** Runs in code points as runs in bytes of UTF-8. */
function toByteRuns(text: string, runs: readonly Run[]): Run[] {
  const chars = text[Symbol.iterator]();
  let point = 0;
  let byte = 0;
  return runs.map((run) => {
    const start = byte;
    for (; point < run.end; point++) {
      const char = chars.next();
      if (char.done === true) break;
      byte += Buffer.byteLength(char.value);
    }
    return { ...run, start, end: byte };
  });
}

/** A token belongs to the run in which it begins. */
function assign(
  tokenBytes: Uint8Array[],
  begin: number,
  runs: Run[],
  roleOf: (message: number | undefined) => string,
): ExampleOrigins {
  const why = new Uint8Array(tokenBytes.length);
  const turns: ExampleOrigins['turns'] = [];
  let byte = -begin;
  let at = 0;
  for (const [t, { length }] of tokenBytes.entries()) {
    while (at < runs.length - 1 && byte >= (runs[at]?.end ?? 0)) at += 1;
    const run = runs[at];
    why[t] = whyNames.indexOf(byte < 0 ? 'template' : (run?.why ?? 'template'));
    const message = run?.message;
    const last = turns.at(-1);
    if (last !== undefined && last.message === message) last.to = t + 1;
    else turns.push({ role: roleOf(message), ...(message !== undefined && { message }), from: t, to: t + 1 });
    byte += length;
  }
  return { turns, why };
}

function changed(file: string): TesseraError {
  const hint = 'Import it again: that makes a dataset of the file as it is now.';
  return new TesseraError('sourceChanged', `${file} changed since the import`, hint);
}
