import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { counted } from '../../contract/counted.ts';
import { dataEndings } from '../../contract/dataFormats.ts';
import { TesseraError } from '../../contract/errors.ts';
import { bundled } from '../bundled.ts';
import type { CallContext } from '../../contract/channel.ts';
import {
  countDatasetsOfCache,
  deleteDataset,
  findDataset,
  listDatasets,
  saveDataset,
  type DatasetRow,
} from '../../../db/queries/datasets.ts';
import type { CoreContext } from '../context.ts';
import { CacheStore, type CacheLease } from './cache/cacheStore.ts';
import { readManifest, type CacheManifest } from './cache/tokenCache.ts';
import { downloadFromHub, hubAccess, parseHubName } from './hub.ts';
import { skippedName, type ImportJob, type JobFile } from './importJob.ts';
import { ImportNotes } from './importNotes.ts';
import { runInThread } from './importThread.ts';
import { hashParts, hashTemplates, readModelFolder, type ModelFolder } from './modelFolder.ts';
import type { ReadOptions, TokenOptions } from './options.ts';
import { readSkipped, type SkippedRow } from './problems.ts';
import { describeFileError, listDataFiles } from './readers/files.ts';
import { hashFile } from './readers/source.ts';

/** What was imported and how; saved with the dataset, and enough to make its tokens again or otherwise. */
export interface DatasetSource {
  paths: string[];
  modelDir: string;
  read: ReadOptions;
  tokens: TokenOptions;
}

export interface ImportRequest extends DatasetSource {
  name: string | undefined;
  strict: boolean;
}

export interface ImportOutcome {
  dataset: DatasetRow;
  manifest: CacheManifest;
}

/** What a run asks of a dataset; what it leaves out is as it was at import. */
export interface TokensRequest {
  modelDir?: string | undefined;
  tokens?: TokenOptions | undefined;
}

const gibibyte = 2 ** 30;
const defaultBudgetGib = 100;

/** Datasets of a home: importing, listing, reading and removing them, and the tokens that runs need. */
export class Datasets {
  private readonly context: CoreContext;
  private readonly store: CacheStore;
  readonly notes: ImportNotes;
  /** Caches being made; a second call for one waits for the first. */
  private readonly making = new Map<string, Promise<CacheManifest>>();

  constructor(context: CoreContext) {
    this.context = context;
    this.notes = new ImportNotes(join(context.home.root, 'imports'));
    const budgetGib = Number(process.env['TESSERA_CACHE_BUDGET_GIB'] ?? defaultBudgetGib);
    this.store = new CacheStore(context.db, context.home.caches, budgetGib * gibibyte);
  }

  /** What the environment asks for goes before the setting. */
  setDiskBudget(gib: number): void {
    if (process.env['TESSERA_CACHE_BUDGET_GIB'] === undefined) this.store.setBudget(gib * gibibyte);
  }

  /**
   * Imports files into a dataset. The same files with the same options give the same dataset, at once where its
   * tokens are still there.
   * @throws {TesseraError} naming the file, folder or option that is at fault
   */
  async import(request: ImportRequest, call: CallContext): Promise<ImportOutcome> {
    const done = this.context.work.begin(`import ${request.paths.join(', ')}`);
    try {
      const paths = await this.localPaths(request.paths, call);
      const { manifest } = await this.makeTokens({ ...request, paths }, request.strict, call);
      if (request.strict && manifest.numSkipped > 0) throw await this.firstSkipped(manifest.key);
      const dataset = toRow(request, paths, manifest);
      const known = findDataset(this.context.db, dataset.id);
      const row = { ...dataset, createdAtMs: known?.createdAtMs ?? dataset.createdAtMs };
      saveDataset(this.context.db, row);
      return { dataset: row, manifest };
    } finally {
      done();
    }
  }

  list(): DatasetRow[] {
    return listDatasets(this.context.db);
  }

  /** By id, or by name where only one dataset has it. @throws {TesseraError} `noDataset` */
  find(idOrName: string): DatasetRow {
    const byId = findDataset(this.context.db, idOrName);
    if (byId !== undefined) return byId;
    const named = this.list().filter(({ name }) => name === idOrName);
    if (named.length === 1 && named[0] !== undefined) return named[0];
    if (named.length === 0)
      throw new TesseraError(
        'noDataset',
        `there is no dataset '${idOrName}'`,
        'See the list of datasets (tessera data list).',
      );
    const ids = named.map(({ id }) => id).join(', ');
    throw new TesseraError(
      'noDataset',
      `several datasets are named '${idOrName}': ${ids}`,
      'Give one of these ids.',
    );
  }

  /** The dataset that an import of this path made last. */
  importedFrom(path: string): DatasetRow | undefined {
    return this.list().find(({ source }) => {
      const { paths } = JSON.parse(source) as DatasetSource;
      return paths.length === 1 && paths[0] === path;
    });
  }

  /** Bytes of the dataset's tokens on disk. */
  sizeOf(row: DatasetRow): number {
    return this.store.sizeOf(row.cacheKey);
  }

  /** Length histograms by id, of the datasets whose tokens are there. */
  histograms(): Record<string, CacheManifest['lengths']['histogram']> {
    const present = this.list().filter(({ cacheKey }) => this.store.has(cacheKey));
    return Object.fromEntries(
      present.map(({ id, cacheKey }) => [id, readManifest(this.store.dirOf(cacheKey)).lengths.histogram]),
    );
  }

  /** Removes the dataset, and its tokens where no other dataset and no run needs them; the files stay. */
  remove(idOrName: string): DatasetRow {
    const row = this.find(idOrName);
    if (this.store.isInUse(row.cacheKey) && countDatasetsOfCache(this.context.db, row.cacheKey) === 1) {
      throw new TesseraError(
        'inUse',
        `the dataset '${row.name}' is in use`,
        'Stop the run that reads it first.',
      );
    }
    deleteDataset(this.context.db, row.id);
    if (countDatasetsOfCache(this.context.db, row.cacheKey) === 0) this.store.remove(row.cacheKey);
    return row;
  }

  /**
   * The tokens of a dataset as a run needs them: those made at import, whatever became of its files, or, for another model, template or
   * supervision, others made now from the same files. Release the lease when the run has ended.
   * @throws {TesseraError} `sourceChanged` where the files are no longer those that were imported
   */
  async tokens(idOrName: string, request: TokensRequest, call: CallContext): Promise<CacheLease> {
    const row = this.find(idOrName);
    const source = JSON.parse(row.source) as DatasetSource & { datasetHash: string };
    const modelDir = request.modelDir ?? source.modelDir;
    const isAsImported = modelDir === source.modelDir && request.tokens === undefined;
    const wanted = { ...source, modelDir, tokens: request.tokens ?? source.tokens };
    if (this.store.has(row.cacheKey)) {
      const lease = this.store.lease(row.cacheKey);
      // What is made already needs neither the files nor a look at them: they may have gone since.
      if (isAsImported || isMadeFor(wanted, lease.manifest)) return lease;
      lease.release();
    }
    try {
      const { manifest } = await this.makeTokens(wanted, false, call, source.datasetHash);
      return this.store.lease(manifest.key);
    } catch (error) {
      if (!(error instanceof TesseraError) || error.code !== 'noFile') throw error;
      const hint =
        'Its rows are read again for other tokens than those of its import. Put the file back, or import again.';
      throw new TesseraError('noFile', `the dataset '${row.name}': ${error.message}`, hint);
    }
  }

  /** Tokens by their cache's key, where they are kept still. */
  kept(cacheKey: string): CacheLease | undefined {
    return this.store.has(cacheKey) ? this.store.lease(cacheKey) : undefined;
  }

  /** The first `limit` rows that were left out, from number `from` on, by file and place. */
  async skipped(cacheKey: string, from: number, limit: number): Promise<SkippedRow[]> {
    return readSkipped(join(this.store.dirOf(cacheKey), skippedName), from, limit);
  }

  /** What the hub names becomes files of the home, so that the dataset is there without a network afterwards. */
  private async localPaths(paths: string[], call: CallContext): Promise<string[]> {
    const root = join(this.context.home.root, 'hub');
    const local: string[] = [];
    for (const path of paths) {
      if (!path.startsWith('hub:')) local.push(path);
      else local.push(...(await downloadFromHub(parseHubName(path), root, hubAccess(), call)));
    }
    return local;
  }

  private async makeTokens(
    source: DatasetSource,
    strict: boolean,
    call: CallContext,
    expectedHash?: string,
  ): Promise<{ manifest: CacheManifest }> {
    const files = await hashFiles(source.paths, call);
    const about = describe(source, files);
    if (expectedHash !== undefined && expectedHash !== about.hashes.dataset) {
      const hint = 'Import them again: that makes a dataset of the files as they are now.';
      throw new TesseraError('sourceChanged', `${source.paths.join(', ')} changed since the import`, hint);
    }
    const { key } = about;
    if (this.store.has(key)) {
      const { manifest, release } = this.store.lease(key);
      release();
      // An earlier version kept caches of no rows; made again, it says why there are none.
      if (manifest.examples > 0) return { manifest };
    }
    const { modelDir, read, tokens } = source;
    const job: ImportJob = { files, modelDir, read, tokens, strict, cacheDir: this.store.dirOf(key), about };
    const making = this.making.get(key) ?? this.make(job, call);
    return { manifest: await making };
  }

  private make(job: ImportJob, call: CallContext): Promise<CacheManifest> {
    const totalBytes = job.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const report = ({ rows, bytes }: { rows: number; bytes: number }) => {
      const detail = counted(rows, 'row');
      call.progress({ what: 'Importing', done: bytes, total: totalBytes, unit: 'bytes', detail });
    };
    const making = runInThread(job, report, call.signal).then((manifest) => {
      this.store.add(manifest);
      return manifest;
    });
    const { key } = job.about;
    this.making.set(key, making);
    return making.finally(() => this.making.delete(key));
  }

  private async firstSkipped(key: string): Promise<TesseraError> {
    const [row] = await this.skipped(key, 0, 1);
    const place =
      row === undefined ? '' : 'line' in row ? `line ${String(row.line)}` : `row ${String(row.row)}`;
    return new TesseraError(
      'badRow',
      `${row?.file ?? ''}, ${place}: ${row?.reason ?? ''}`,
      'Mend the row, or import without strict (--strict): bad rows are then listed.',
    );
  }
}

/** The model that a request names, else the bundled one. */
export function modelDirOf(model: string | undefined): string {
  return model === undefined || model === 'bundled' ? bundled().model : model;
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

async function hashFiles(paths: string[], call: CallContext): Promise<JobFile[]> {
  const files: JobFile[] = [];
  const listed = await listDataFiles(paths, call.signal);
  const total = listed.reduce((sum, path) => sum + sizeOf(path), 0);
  let done = 0;
  const onBytes = (numBytes: number) => {
    call.progress({ what: 'Reading the files', done: (done += numBytes), total, unit: 'bytes' });
  };
  for (const path of listed) {
    try {
      const stats = statSync(path);
      const sha256 = await hashFile(path, onBytes, call.signal);
      files.push({ path, sizeBytes: stats.size, modifiedMs: stats.mtimeMs, sha256 });
    } catch (error) {
      if (call.signal.aborted) throw new TesseraError('cancelled', 'the import was cancelled');
      throw describeFileError(error, path);
    }
  }
  return files;
}

/** The cache's identity: everything that its tokens or its places depend on. */
function describe(source: DatasetSource, files: JobFile[]): ImportJob['about'] {
  const model = readModelFolder(source.modelDir);
  const { read, tokens } = source;
  const hashes = {
    dataset: hashParts(files.map(({ sha256 }) => sha256)),
    ...hashesBesideFiles(source, model),
  };
  const key = hashParts([...Object.values(hashes), ...files.map(({ path }) => path)]).slice(0, 32);
  return { key, hashes, options: { ...read, ...tokens }, model: basename(model.dir) };
}

function hashesBesideFiles({ read, tokens }: DatasetSource, model: ModelFolder) {
  return {
    template: hashTemplates(model.templates),
    tokenizer: hashParts([model.tokenizerHash, JSON.stringify([model.specialTokens, model.addBos])]),
    options: hashParts([JSON.stringify(sortKeys([cacheVersion, read, tokens]))]),
  };
}

/** Whether the tokens of an import are those that this model and these options make of it. */
function isMadeFor(source: DatasetSource, { hashes }: CacheManifest): boolean {
  const wanted = Object.entries(hashesBesideFiles(source, readModelFolder(source.modelDir)));
  return wanted.every(([name, hash]) => hashes[name as keyof typeof hashes] === hash);
}

/** Options that say the same are the same, in whatever order they were given. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => [name, sortKeys(item)]),
  );
}

/** Raised where the same input gives other tokens than before. */
const cacheVersion = 3;

function toRow(request: ImportRequest, paths: string[], manifest: CacheManifest): DatasetRow {
  const name = request.name ?? nameOf(request.paths);
  const { modelDir, read, tokens } = request;
  const source = { paths, modelDir, read, tokens, datasetHash: manifest.hashes.dataset };
  return {
    id: `${slug(name)}-${createHash('sha256').update(`${manifest.key} ${name}`).digest('hex').slice(0, 8)}`,
    name,
    createdAtMs: Date.now(),
    cacheKey: manifest.key,
    format: manifest.format,
    rows: manifest.examples,
    tokens: manifest.tokens,
    supervisedTokens: manifest.supervisedTokens,
    numSkipped: manifest.numSkipped,
    source: JSON.stringify(source),
  };
}

function nameOf(paths: string[]): string {
  const endings = new RegExp(`(\\.(${dataEndings.join('|')}))+$`, 'i');
  const first = basename(paths[0] ?? 'data').replace(endings, '');
  return paths.length > 1 ? `${first} and ${String(paths.length - 1)} more` : first;
}

function slug(name: string): string {
  const words = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return words.slice(0, 40) || 'data';
}
