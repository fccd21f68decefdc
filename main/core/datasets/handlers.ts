import { join } from 'node:path';
import type { CallContext } from '../../contract/channel.ts';
import type { Handlers } from '../../contract/channel.ts';
import { dataFormatNames, type DataFormat } from '../../contract/dataFormats.ts';
import type { Dataset, datasetChannels, ImportArgs } from '../../contract/datasets.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { DatasetRow } from '../../../db/queries/datasets.ts';
import { bundled } from '../bundled.ts';
import { cutBy, exampleAt, previewRows, viewExample } from './browse.ts';
import { TokenCache } from './cache/tokenCache.ts';
import { modelDirOf, type Datasets, type DatasetSource, type ImportRequest } from './datasets.ts';
import { defaultLimits } from './readers/rows.ts';
import { formatOfEnding } from './readers/sniff.ts';
import { viewRows } from './rowView.ts';
import { rowFormats, type RowFormat } from './schema/mapping.ts';
import { previewFiles } from './previewFiles.ts';
import { sampleRows } from './sampleRows.ts';
import { searchExamples } from './searchExamples.ts';
import { itemJson, readSourceItem, traceTokens } from './sourceRow.ts';
import { openTokenTable, type TokenTable } from './tokenise/tokenTable.ts';

/** Skipped rows in one answer; the rest is read page by page. */
const maxSkippedInResult = 100_000;

export function datasetHandlers(datasets: Datasets): Handlers<typeof datasetChannels> {
  const toDataset = (row: DatasetRow): Dataset => {
    const { id, name, format, rows, tokens, supervisedTokens, numSkipped, createdAtMs } = row;
    const sizeBytes = datasets.sizeOf(row);
    return { id, name, format, rows, tokens, supervisedTokens, numSkipped, createdAtMs, sizeBytes };
  };
  const withLike = (request: ImportRequest, like: string | undefined): ImportRequest => {
    if (like === undefined) return request;
    const { modelDir, tokens } = JSON.parse(datasets.find(like).source) as DatasetSource;
    return { ...request, modelDir, tokens };
  };
  /** Opens a dataset's tokens for as long as `use` takes. */
  const reading = async <T>(id: string, call: CallContext, use: (open: OpenDataset) => T | Promise<T>) => {
    const row = datasets.find(id);
    const source = JSON.parse(row.source) as DatasetSource;
    const { dir, release } = await datasets.tokens(row.id, {}, call);
    const cache = new TokenCache(dir);
    try {
      return await use({ cache, source, table: openTokenTable(join(source.modelDir, 'tokenizer.json')) });
    } finally {
      cache.close();
      release();
    }
  };
  return {
    'datasets:import': async (args, call) => {
      const request = withLike(toRequest(args), args.like);
      const done = datasets.notes.begin(args);
      const { dataset, manifest } = await datasets.import(request, call).finally(done);
      const skipped = await datasets.skipped(dataset.cacheKey, 0, maxSkippedInResult);
      return {
        dataset: toDataset(dataset),
        skipped,
        warnings: manifest.warnings,
        detections: manifest.detections,
      };
    },
    'datasets:list': () => {
      const interrupted = datasets.notes.interrupted();
      return { datasets: datasets.list().map(toDataset), ...(interrupted.length > 0 && { interrupted }) };
    },
    'datasets:forget-import': ({ key }) => {
      datasets.notes.forget(key);
      return { ok: true };
    },
    'datasets:show': async ({ id }, call) => {
      const row = datasets.find(id);
      const { manifest, release } = await datasets.tokens(row.id, {}, call);
      release();
      const { lengths, formats, detections, warnings, files, options, model } = manifest;
      return { dataset: toDataset(row), lengths, formats, detections, warnings, files, options, model };
    },
    'datasets:skipped': async ({ id, from, count }, call) => {
      const row = datasets.find(id);
      (await datasets.tokens(row.id, {}, call)).release();
      return { skipped: await datasets.skipped(row.cacheKey, from, count) };
    },
    'datasets:rows': async ({ id, from, count }, call) => {
      const row = datasets.find(id);
      const { dir, release } = await datasets.tokens(row.id, {}, call);
      try {
        const { modelDir } = JSON.parse(row.source) as DatasetSource;
        return { rows: viewRows(dir, join(modelDir, 'tokenizer.json'), from, count) };
      } finally {
        release();
      }
    },
    'datasets:previews': ({ id, indices }, call) =>
      reading(id, call, ({ cache, table }) => ({ rows: previewRows(cache, table, indices) })),
    'datasets:example': ({ id, index }, call) =>
      reading(id, call, ({ cache, table }) => viewExample(cache, table, index)),
    'datasets:origins': ({ id, index }, call) =>
      reading(id, call, async ({ cache, table, source }) => {
        const cached = exampleAt(cache, index);
        const item = await readSourceItem(source, cached, call.signal);
        const tokenBytes = Array.from(cached.ids, (token) => table.bytesOf(token));
        return traceTokens(item, source, cached, tokenBytes);
      }),
    'datasets:source': ({ id, index }, call) =>
      reading(id, call, async ({ cache, source }) => {
        return { json: itemJson(await readSourceItem(source, exampleAt(cache, index), call.signal)) };
      }),
    'datasets:lengths': ({ id }, call) =>
      reading(id, call, ({ cache }) => ({ lengths: cache.lengths(), supervised: cache.supervisedCounts() })),
    'datasets:cut': ({ id, budget }, call) => reading(id, call, ({ cache }) => cutBy(cache, budget)),
    'datasets:histograms': () => ({ histograms: datasets.histograms() }),
    'datasets:sample': ({ source, columns, roles, count }, call) => {
      const base =
        'dataset' in source
          ? (JSON.parse(datasets.find(source.dataset).source) as DatasetSource)
          : toRequest({ ...plainImport, paths: source.paths });
      const read = { ...base.read, mapping: { columns, roles } };
      return sampleRows({ ...base, read, count }, call.signal);
    },
    'datasets:preview': ({ paths, columns, roles, count }, call) => {
      const { read } = toRequest({ ...plainImport, paths, columns, roles });
      return previewFiles(paths, read, count, call.signal);
    },
    'datasets:search': async ({ id, text }, emit, signal) => {
      const call = { signal, progress: () => undefined };
      await reading(id, call, ({ cache, table }) => searchExamples(cache, table, text, emit, signal));
    },
    'datasets:remove': ({ id }) => {
      const removed = toDataset(datasets.find(id));
      datasets.remove(id);
      return { ok: true, removed };
    },
  };
}

interface OpenDataset {
  cache: TokenCache;
  source: DatasetSource;
  table: TokenTable;
}

const plainImport: Omit<ImportArgs, 'paths'> = {
  template: {},
  supervise: { turns: 'assistant', reasoning: true },
  columns: {},
  roles: {},
  strict: false,
};

/** `bundled` are the sample chats that come with the program. */
const bundledName = 'bundled';

function toRequest(args: ImportArgs): ImportRequest {
  const maxFieldBytes = args.maxFieldBytes ?? defaultLimits.maxFieldBytes;
  return {
    paths: args.paths.map((path) => (path === bundledName ? bundled().samples : path)),
    name: args.name,
    strict: args.strict,
    modelDir: modelDirOf(args.model),
    read: {
      ...readFormat(args.format),
      mapping: { columns: args.columns, roles: args.roles },
      limits: { maxFieldBytes, maxRecordBytes: Math.max(defaultLimits.maxRecordBytes, 2 * maxFieldBytes) },
    },
    tokens: {
      ...(args.template.name !== undefined && { templateName: args.template.name }),
      templateArguments: args.template.arguments ?? {},
      supervise: args.supervise,
    },
  };
}

const otherNames: Readonly<Record<string, RowFormat>> = {
  conversations: 'sharegpt',
  'prompt-completion': 'completion',
  prompt: 'completion',
};

/** One word says either what the file is or what its rows are. */
function readFormat(format: string | undefined): { fileFormat?: DataFormat; rowFormat?: RowFormat } {
  if (format === undefined) return {};
  const fileFormat = formatOfEnding(format);
  if (fileFormat !== undefined && format !== 'text') return { fileFormat };
  const rowFormat = rowFormats.find((name) => name === format) ?? otherNames[format];
  if (rowFormat !== undefined) return { rowFormat };
  const known = [dataFormatNames, ...rowFormats].join(', ');
  throw new TesseraError('badFormat', `there is no format '${format}'`, `Formats are ${known}.`);
}
