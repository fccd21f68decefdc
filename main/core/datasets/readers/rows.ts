import type { Dict } from '../template/values.ts';

/** Where a row stands: a physical line (JSON Lines, CSV, text) or a row number (JSON, Parquet); both from 1. */
export type Place = { line: number } | { row: number };

/**
 * What a reader found at a place: text that holds one JSON value, a value that was read already, or a problem.
 * `nullsAdded`: the format itself (Parquet's unified structs) may have added null fields.
 */
export type ReadItem =
  | { at: Place; json: string }
  | { at: Place; value: Dict; nullsAdded?: boolean }
  | { at: Place; problem: string };

export interface ReadLimits {
  /** A text field larger than this, in bytes of UTF-8, makes its row a skipped one. */
  maxFieldBytes: number;
  /** A line, a CSV record or a JSON element larger than this is not kept in memory at all. */
  maxRecordBytes: number;
}

export const defaultLimits: ReadLimits = { maxFieldBytes: 4 << 20, maxRecordBytes: 32 << 20 };

export function formatBytes(bytes: number): string {
  if (bytes < 1 << 20) return `${bytes.toLocaleString('en')} bytes`;
  return `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

/** The file a problem with the whole of it is told about: nothing more can be read from it. */
export class UnreadableFileError extends Error {
  override name = 'UnreadableFileError';
  readonly at: Place;
  constructor(at: Place, message: string) {
    super(message);
    this.at = at;
  }
}
