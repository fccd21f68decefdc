import { isUtf8 } from 'node:buffer';
import { notUtf8 } from './lines.ts';
import { formatBytes, UnreadableFileError, type ReadItem, type ReadLimits } from './rows.ts';

const quote = 34;
const comma = 44;
const colon = 58;
const openBracket = 91;
const backslash = 92;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;

/** An object with one of these holding an array is a row itself, not a file of rows. */
const rowKeys = new Set([
  'messages',
  'conversations',
  'conversation',
  'history',
  'prompt',
  'completion',
  'tools',
]);

/**
 * A JSON file: an array of rows, an object with one array of rows, or an object that is one row. Elements are cut
 * out of the bytes one by one, so a file may be larger than memory.
 * @returns each element's text at its number in the array, from 1
 * @throws {UnreadableFileError} where the file ends too early or is no array and no object
 */
export async function* readJson(
  chunks: AsyncIterable<Buffer>,
  limits: ReadLimits,
): AsyncGenerator<ReadItem[]> {
  const scanner = new JsonScanner(limits.maxRecordBytes);
  for await (const chunk of chunks) {
    scanner.scan(chunk);
    const items = scanner.take();
    if (items.length > 0) yield items;
  }
  scanner.end();
  const items = scanner.take();
  if (items.length > 0) yield items;
}

/** Finds the elements' bounds by depth, outside strings; what an element says is the row parser's business. */
class JsonScanner {
  private readonly maxBytes: number;
  private items: ReadItem[] = [];
  private row = 0;
  /** Depth at which the commas between rows stand; 0 until the array is found. */
  private rowDepth = 0;
  private arrayKey: string | undefined;
  private depth = 0;
  private inString = false;
  private escaped = false;
  private lastString = '';
  private key = '';
  private started = false;
  /** The whole object is one row. */
  private isRow = false;
  private finished = false;
  private skipping = false;
  private pieces: Buffer[] = [];
  private numBytes = 0;
  private stringPieces: Buffer[] = [];

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  take(): ReadItem[] {
    const { items } = this;
    this.items = [];
    return items;
  }

  scan(chunk: Buffer): void {
    let from = 0;
    let stringFrom = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] as number;
      if (this.inString) {
        if (this.escaped) this.escaped = false;
        else if (byte === backslash) this.escaped = true;
        else if (byte === quote) {
          this.inString = false;
          if (this.keepsString()) this.endString(chunk.subarray(stringFrom, i));
        }
        continue;
      }
      if (byte === quote) {
        this.inString = true;
        stringFrom = i + 1;
        if (!this.started) this.begin(byte);
      } else if (byte <= 32 || (byte >= 128 && !this.started)) {
        continue;
      } else if (!this.started) {
        from = this.begin(byte) ? i + 1 : i;
        this.depth = 1;
      } else if (this.finished) {
        throw new UnreadableFileError({ row: this.row }, 'more text follows the end of the JSON value');
      } else if (byte === openBracket || byte === openBrace) {
        if (byte === openBracket && this.depth === 1 && this.beginArray()) from = i + 1;
        this.depth += 1;
      } else if (byte === closeBracket || byte === closeBrace) {
        if (this.rowDepth > 0 && this.depth === this.rowDepth) {
          this.keep(chunk.subarray(from, i));
          this.finishRow();
          this.skipping = true;
          if (this.rowDepth === 1) this.finished = true;
          this.rowDepth = -1;
        }
        this.depth -= 1;
        if (this.depth === 0) {
          if (this.rowDepth === 0) {
            this.keep(chunk.subarray(from, i + 1));
            this.finishRow();
          }
          this.finished = true;
          from = i + 1;
        }
      } else if (byte === comma && this.depth === this.rowDepth) {
        this.keep(chunk.subarray(from, i));
        this.finishRow();
        from = i + 1;
      } else if (byte === colon && this.depth === 1) this.key = this.lastString;
    }
    if (this.started && !this.finished) this.keep(chunk.subarray(from));
    if (this.inString && this.keepsString()) this.stringPieces.push(chunk.subarray(stringFrom));
  }

  end(): void {
    if (!this.started) throw new UnreadableFileError({ row: 1 }, 'the file holds no JSON');
    if (!this.finished) {
      throw new UnreadableFileError(
        { row: this.row + 1 },
        'the file ends before its JSON value does: it was cut short',
      );
    }
  }

  /** @returns whether the rows follow this byte directly */
  private begin(byte: number): boolean {
    this.started = true;
    if (byte === openBracket) this.rowDepth = 1;
    else if (byte !== openBrace) {
      throw new UnreadableFileError({ row: 1 }, 'neither a JSON array of rows nor an object with one');
    }
    return byte === openBracket;
  }

  private beginArray(): boolean {
    if (rowKeys.has(this.key) && this.rowDepth === 0) this.isRow = true;
    if (this.isRow) return false;
    if (this.rowDepth === 0) {
      this.rowDepth = 2;
      this.arrayKey = this.key;
      this.pieces = [];
      this.numBytes = 0;
      return true;
    }
    if (this.arrayKey !== undefined) {
      const problem = `a second array '${this.key}' beside '${this.arrayKey}' is not read`;
      this.items.push({ at: { row: this.row + 1 }, problem });
    }
    return false;
  }

  private keepsString(): boolean {
    return this.depth === 1 && this.rowDepth !== 1;
  }

  private endString(piece: Buffer): void {
    this.lastString = Buffer.concat([...this.stringPieces, piece]).toString('utf8');
    this.stringPieces = [];
  }

  private keep(piece: Buffer): void {
    if (this.skipping) return;
    this.numBytes += piece.length;
    if (this.numBytes <= this.maxBytes) this.pieces.push(piece);
    else this.pieces = [];
  }

  private finishRow(): void {
    if (this.skipping) return;
    const size = this.numBytes;
    const bytes = Buffer.concat(this.pieces);
    this.pieces = [];
    this.numBytes = 0;
    if (size > this.maxBytes) {
      const problem = `an element of ${formatBytes(size)}; elements up to ${formatBytes(this.maxBytes)} are read`;
      this.items.push({ at: { row: ++this.row }, problem });
      return;
    }
    if (!isUtf8(bytes)) this.items.push({ at: { row: ++this.row }, problem: notUtf8(bytes) });
    else {
      const json = bytes.toString('utf8').trim();
      if (json !== '') this.items.push({ at: { row: ++this.row }, json });
    }
  }
}
