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

/** Rows of one file in batches, in order, whatever its format. */
export async function* readFileRows(request: ReadRequest): AsyncGenerator<ReadItem[]> {
  const { path, format, compression, limits, onBytes, signal } = request;
  const bytes = () => readBytes(path, compression, onBytes, signal);
  // DuckDB is large: it is loaded for those files only that need it.
  if (format === 'parquet') yield* (await import('./parquetFile.ts')).readParquet(path, onBytes);
  else if (format === 'csv') yield* (await import('./csvFile.ts')).readCsv(bytes(), limits);
  else if (format === 'json') yield* readJson(bytes(), limits);
  else if (format === 'txt') yield* readText(bytes(), limits);
  else yield* readJsonLines(bytes(), limits);
}

/** What the places of a format count. */
export function unitOf(format: DataFormat): 'line' | 'row' {
  return format === 'json' || format === 'parquet' ? 'row' : 'line';
}
