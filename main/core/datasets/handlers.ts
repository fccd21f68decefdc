import { join } from 'node:path';
import type { Handlers } from '../../contract/channel.ts';
import type { Dataset, datasetChannels, ImportArgs } from '../../contract/datasets.ts';
import { TesseraError } from '../../contract/errors.ts';
import type { DatasetRow } from '../../../db/queries/datasets.ts';
import { modelDirOf, type Datasets, type DatasetSource, type ImportRequest } from './datasets.ts';
import { defaultLimits, type DataFormat } from './readers/rows.ts';
import { formatByExtension } from './readers/sniff.ts';
import { viewRows } from './rowView.ts';
import { rowFormats, type RowFormat } from './schema/mapping.ts';

/** Skipped rows in one answer; the rest is read page by page. */
const maxSkippedInResult = 100_000;

export function datasetHandlers(datasets: Datasets): Handlers<typeof datasetChannels> {
  const toDataset = (row: DatasetRow): Dataset => {
    const { id, name, format, rows, tokens, supervisedTokens, numSkipped, createdAtMs } = row;
    const sizeBytes = datasets.sizeOf(row);
    return { id, name, format, rows, tokens, supervisedTokens, numSkipped, createdAtMs, sizeBytes };
  };
  return {
    'datasets:import': async (args, call) => {
      const { dataset, manifest } = await datasets.import(toRequest(args), call);
      const skipped = await datasets.skipped(dataset.cacheKey, 0, maxSkippedInResult);
      return { dataset: toDataset(dataset), skipped, warnings: manifest.warnings };
    },
    'datasets:list': () => ({ datasets: datasets.list().map(toDataset) }),
    'datasets:show': async ({ id }, call) => {
      const row = datasets.find(id);
      const { manifest, release } = await datasets.tokens(row.id, {}, call);
      release();
      const { lengths, formats, warnings, files, options, model } = manifest;
      return { dataset: toDataset(row), lengths, formats, warnings, files, options, model };
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
    'datasets:remove': ({ id }) => {
      const removed = toDataset(datasets.find(id));
      datasets.remove(id);
      return { ok: true, removed };
    },
  };
}

function toRequest(args: ImportArgs): ImportRequest {
  const maxFieldBytes = args.maxFieldBytes ?? defaultLimits.maxFieldBytes;
  return {
    paths: args.paths,
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
  const fileFormat = formatByExtension[`.${format}`];
  if (fileFormat !== undefined && format !== 'text') return { fileFormat };
  const rowFormat = rowFormats.find((name) => name === format) ?? otherNames[format];
  if (rowFormat !== undefined) return { rowFormat };
  const known = ['jsonl', 'json', 'csv', 'parquet', 'txt', ...rowFormats].join(', ');
  throw new TesseraError('badFormat', `there is no format '${format}'`, `Formats are ${known}.`);
}
