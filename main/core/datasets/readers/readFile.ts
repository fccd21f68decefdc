import type { DataFormat } from '../../../contract/dataFormats.ts';
import { readJson } from './jsonFile.ts';
import { readJsonLines } from './jsonLines.ts';
import type { ReadItem, ReadLimits } from './rows.ts';
import { readBytes, type Compression } from './source.ts';
import { readText } from './textFile.ts';

export interface ReadRequest {
  path: string;
  format: DataFormat;
  compression: Compression;
  limits: ReadLimits;
  /** Told how many bytes of the file itself were read since the last call. */
  onBytes: (numBytes: number) => void;
  signal: AbortSignal;
}

const bytesOf = ({ path, compression, onBytes, signal }: ReadRequest) =>
  readBytes(path, compression, onBytes, signal);

// DuckDB and the CSV parser are large: they are loaded for those files only that need them.
const readers: Record<DataFormat, (request: ReadRequest) => AsyncGenerator<ReadItem[]>> = {
  jsonl: (request) => readJsonLines(bytesOf(request), request.limits),
  json: (request) => readJson(bytesOf(request), request.limits),
  txt: (request) => readText(bytesOf(request), request.limits),
  csv: async function* (request) {
    yield* (await import('./csvFile.ts')).readCsv(bytesOf(request), request.limits);
  },
  parquet: async function* ({ path, onBytes }) {
    yield* (await import('./parquetFile.ts')).readParquet(path, onBytes);
  },
};

/** Rows of one file in batches, in order, whatever its format. */
export function readFileRows(request: ReadRequest): AsyncGenerator<ReadItem[]> {
  return readers[request.format](request);
}

/** What the places of a format count. */
export function unitOf(format: DataFormat): 'line' | 'row' {
  return format === 'json' || format === 'parquet' ? 'row' : 'line';
}
