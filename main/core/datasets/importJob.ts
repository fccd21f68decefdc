import { statSync } from 'node:fs';
import { join } from 'node:path';
import { counted } from '../../contract/counted.ts';
import { TesseraError } from '../../contract/errors.ts';
import { CacheWriter } from './cache/cacheWriter.ts';
import type { CacheManifest, SourceFile } from './cache/tokenCache.ts';
import { readModelFolder } from './modelFolder.ts';
import type { ReadOptions, TokenOptions } from './options.ts';
import { inOrder, placeOf, SkippedLog, WarningCounter } from './problems.ts';
import { readFileRows, unitOf } from './readers/readFile.ts';
import { UnreadableFileError, type Place, type ReadItem } from './readers/rows.ts';
import { sniffFile } from './readers/sniff.ts';
import { DuplicateCounter } from './duplicates.ts';
import { RowError } from './schema/messages.ts';
import type { Detection } from './schema/detect.ts';
import type { Example } from './schema/normalise.ts';
import { toExample } from './toExample.ts';
import { ExampleTokenizer } from './tokenise/exampleTokenizer.ts';
import { ExampleRenderer, type RenderedExample } from './tokenise/renderExample.ts';

/** A file to import, as it was when its hash was taken. */
export interface JobFile {
  path: string;
  sizeBytes: number;
  modifiedMs: number;
  sha256: string;
}

/** Everything a worker needs; plain data, so that it travels between threads. */
export interface ImportJob {
  files: JobFile[];
  modelDir: string;
  read: ReadOptions;
  tokens: TokenOptions;
  strict: boolean;
  cacheDir: string;
  about: Pick<CacheManifest, 'key' | 'hashes' | 'options' | 'model'>;
}

export interface ImportProgress {
  rows: number;
  bytes: number;
}

export const skippedName = 'skipped.jsonl';

interface Pending {
  rendered: RenderedExample;
  detection: Detection;
  file: number;
  at: Place;
  hasAssistant: boolean;
}

/** Characters and rows handed to the tokenizer at once: enough for all cores, little enough to stay small. */
const batchChars = 1 << 20;
const batchRows = 512;

/**
 * Reads, recognises, renders, masks and tokenises all rows and writes the cache. While one batch is tokenised on
 * all cores, this thread renders the next; no more than that is in memory.
 * @throws {TesseraError} `badRow` (strict), `noRows`, `noUsableRows`, `fileChanged`, or what a file, the model or the disk refuse
 */
export async function runImportJob(
  job: ImportJob,
  onProgress: (progress: ImportProgress) => void,
  signal: AbortSignal,
): Promise<CacheManifest> {
  const model = readModelFolder(job.modelDir);
  const tokenizer = await ExampleTokenizer.open(model);
  const run = new ImportRun(job, new ExampleRenderer(model, job.tokens), tokenizer, onProgress);
  try {
    for (const index of job.files.keys()) await run.importFile(index, signal);
    return await run.finish(signal);
  } catch (error) {
    run.abandon();
    throw error;
  }
}

class ImportRun {
  private readonly job: ImportJob;
  private readonly renderer: ExampleRenderer;
  private readonly tokenizer: ExampleTokenizer;
  private readonly onProgress: (progress: ImportProgress) => void;
  private readonly writer: CacheWriter;
  private readonly skipped: SkippedLog;
  private readonly warnings = new WarningCounter();
  private readonly duplicates = new DuplicateCounter();
  private readonly detections = new Map<string, Detection & { count: number }>();
  private readonly units: SourceFile['unit'][] = [];
  private readonly specialText: RegExp | undefined;
  private batch: Pending[] = [];
  private numBatchChars = 0;
  private inFlight: Promise<void> = Promise.resolve();
  private rows = 0;
  private kept = 0;
  private firstSkipped: { problem: string; hint: string | undefined } | undefined;
  private bytes = 0;

  constructor(
    job: ImportJob,
    renderer: ExampleRenderer,
    tokenizer: ExampleTokenizer,
    onProgress: (progress: ImportProgress) => void,
  ) {
    this.job = job;
    this.renderer = renderer;
    this.tokenizer = tokenizer;
    this.onProgress = onProgress;
    this.writer = new CacheWriter(job.cacheDir);
    this.skipped = new SkippedLog(join(this.writer.partial, skippedName));
    const texts = tokenizer.specialTexts.map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
    this.specialText = texts.length === 0 ? undefined : new RegExp(texts.join('|'));
  }

  async importFile(index: number, signal: AbortSignal): Promise<void> {
    const { path } = this.job.files[index] as JobFile;
    const sniffed = await sniffFile(path);
    this.units[index] = 'line';
    if ('problem' in sniffed) {
      this.skip(index, { line: 1 }, sniffed.problem, sniffed.hint);
      return;
    }
    const format = this.job.read.fileFormat ?? sniffed.format;
    const { compression } = sniffed;
    this.units[index] = unitOf(format);
    if (sniffed.nameSays !== undefined && sniffed.nameSays !== format)
      this.warn('wrongExtension', index, { line: 1 });
    const onBytes = (numBytes: number) => {
      this.bytes += numBytes;
    };
    const { limits } = this.job.read;
    let last: Place | undefined;
    try {
      for await (const items of readFileRows({ path, format, compression, limits, onBytes, signal })) {
        await this.importItems(index, items, signal);
        last = items.at(-1)?.at ?? last;
      }
    } catch (error) {
      if (!(error instanceof UnreadableFileError)) throw error;
      this.skip(index, laterOf(error.at, last), error.message);
    }
  }

  async finish(signal: AbortSignal): Promise<CacheManifest> {
    await this.submit();
    await this.inFlight;
    signal.throwIfAborted();
    this.checkUnchanged();
    if (this.rows === 0) throw this.noRows();
    if (this.kept === 0) throw noUsableRows(this.skipped);
    this.skipped.flush();
    const formats: Record<string, number> = {};
    for (const { format, count } of this.detections.values())
      formats[format] = (formats[format] ?? 0) + count;
    const names = Object.keys(formats);
    const duplicates = this.duplicates.list(this.job.files.map(({ path }) => path));
    return this.writer.finish({
      ...this.job.about,
      format: names.length > 1 ? 'mixed' : (names[0] ?? 'none'),
      formats,
      detections: [...this.detections.values()].sort((a, b) => b.count - a.count),
      numSkipped: this.skipped.count,
      warnings: [...this.warnings.list(), ...duplicates],
      files: this.job.files.map(({ path, sizeBytes, sha256 }, index) => {
        return { path, sizeBytes, sha256, unit: this.units[index] ?? 'line' };
      }),
    });
  }

  abandon(): void {
    this.writer.abandon();
  }

  private async importItems(file: number, items: ReadItem[], signal: AbortSignal): Promise<void> {
    for (const item of items) {
      this.prepare(file, item);
      if (this.numBatchChars < batchChars && this.batch.length < batchRows) continue;
      signal.throwIfAborted();
      await this.submit();
    }
    this.onProgress({ rows: this.rows, bytes: this.bytes });
  }

  private prepare(file: number, item: ReadItem): void {
    this.rows += 1;
    try {
      const { detection, example } = toExample(item, this.job.read, (code) => {
        this.warn(code, file, item.at);
      });
      const rendered = this.renderer.render(example);
      const numChars = rendered.pieces.reduce((sum, { text }) => sum + text.length, 0);
      if (numChars > 2 * this.job.read.limits.maxFieldBytes) {
        throw new RowError(
          `${numChars.toLocaleString('en')} characters in one row are more than can be tokenised`,
        );
      }
      if (this.hasSpecialText(example)) this.warn('specialTokenText', file, item.at);
      this.batch.push({ rendered, detection, file, at: item.at, hasAssistant: hasAssistant(example) });
      this.numBatchChars += numChars;
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
      this.skip(file, item.at, error.message);
    }
  }

  /** Starts the batch once the one before is written, so that at most two are in memory. */
  private async submit(): Promise<void> {
    const { batch } = this;
    this.batch = [];
    this.numBatchChars = 0;
    await this.inFlight;
    if (batch.length === 0) return;
    this.inFlight = this.tokenise(batch);
    // A failure is met at the next await; until then it must not count as unhandled.
    this.inFlight.catch(() => undefined);
  }

  private async tokenise(batch: Pending[]): Promise<void> {
    const tokenised = await this.tokenizer.encode(batch.map(({ rendered }) => rendered));
    for (const [index, { rendered, detection, file, at, hasAssistant: spoke }] of batch.entries()) {
      const { ids, supervised, targets } = tokenised[index] as (typeof tokenised)[number];
      if (targets === 0) {
        this.skip(
          file,
          at,
          spoke ? 'nothing to learn: no token is supervised' : 'nothing to learn: no assistant message',
        );
        continue;
      }
      this.kept += 1;
      this.count(detection);
      this.duplicates.add(rendered, file, at);
      this.writer.add(
        { ids, supervised, kind: rendered.kind, sourceFile: file, sourceAt: placeOf(at) },
        targets,
      );
    }
  }

  private count(detection: Detection): void {
    const key = `${detection.format} ${detection.reason}`;
    const known = this.detections.get(key);
    if (known === undefined) this.detections.set(key, { ...detection, count: 1 });
    else known.count += 1;
  }

  private hasSpecialText(example: Example): boolean {
    const { specialText } = this;
    if (specialText === undefined) return false;
    if (example.kind === 'text') return specialText.test(example.text);
    if (example.kind === 'completion')
      return specialText.test(example.prompt) || specialText.test(example.completion);
    return example.messages.some((message) => {
      return ['content', 'reasoning_content'].some((name) => {
        const text = message.get(name);
        return typeof text === 'string' && specialText.test(text);
      });
    });
  }

  private warn(code: string, file: number, at: Place): void {
    this.warnings.add(code, this.job.files[file]?.path ?? '', at);
  }

  private skip(file: number, at: Place, problem: string, hint?: string): void {
    const path = this.job.files[file]?.path ?? '';
    const reason = hint === undefined ? problem : `${problem}. ${hint}`;
    this.firstSkipped ??= { problem: `${path}: ${problem}`, hint };
    if (this.job.strict) {
      const place = 'line' in at ? `line ${String(at.line)}` : `row ${String(at.row)}`;
      throw new TesseraError(
        'badRow',
        `${path}, ${place}: ${reason}`,
        'Mend the row, or import without strict (--strict): bad rows are then listed.',
      );
    }
    this.skipped.add({ file: path, ...at, reason });
  }

  private noRows(): TesseraError {
    const files =
      this.job.files.length === 1 ? (this.job.files[0]?.path ?? '') : counted(this.job.files.length, 'file');
    return new TesseraError(
      'noRows',
      this.firstSkipped?.problem ?? `${files}: no rows`,
      this.firstSkipped?.hint ?? 'Give files that hold rows to learn from.',
    );
  }

  /** A file that changed while it was read would give a cache of neither version. */
  private checkUnchanged(): void {
    for (const { path, sizeBytes, modifiedMs } of this.job.files) {
      const now = statSync(path);
      if (now.size !== sizeBytes || now.mtimeMs !== modifiedMs) {
        throw new TesseraError(
          'fileChanged',
          `${path} changed while it was read`,
          'Import it again when it is complete.',
        );
      }
    }
  }
}

/** Every row was skipped: an empty dataset would only be met as an error later. */
function noUsableRows({ count, first, mostOften }: SkippedLog): TesseraError {
  const { reason, count: often, first: example } = mostOften;
  const at = `${example.file}:${String(placeOf(example))}`;
  const what = count === 1 ? 'the only row was skipped' : `all ${counted(count, 'row')} were skipped`;
  const why =
    often === count
      ? ''
      : often === 1
        ? ', the first because'
        : `, most often (${counted(often, 'time')}) because`;
  return new TesseraError(
    'noUsableRows',
    `${what}${why}: ${reason}`,
    `${count === 1 ? 'It is' : 'The first of them:'} ${at}. Mend the rows, or say which columns and roles are meant (in Columns, or with --column and --role).`,
    { skipped: inOrder(first) },
  );
}

/** Where a file breaks off is known only to lie behind the last row that was read. */
function laterOf(at: Place, last: Place | undefined): Place {
  if (last === undefined || placeOf(at) > placeOf(last)) return at;
  return 'line' in last ? { line: last.line + 1 } : { row: last.row + 1 };
}

function hasAssistant(example: Example): boolean {
  return example.kind !== 'chat' || example.messages.some((message) => message.get('role') === 'assistant');
}
