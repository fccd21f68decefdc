import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { parse, type CsvError } from 'csv-parse';
import { Dict } from '../template/values.ts';
import { notUtf8 } from './lines.ts';
import { formatBytes, UnreadableFileError, type ReadItem, type ReadLimits } from './rows.ts';

/** A record and the physical line where it begins. */
interface CsvRecord {
  record: string[];
  line: number;
}

const batchRows = 256;

/**
 * CSV by RFC 4180: a header row, every value text, quoted newlines kept, physical lines counted.
 * @returns rows by column name, each at the line where its record begins
 * @throws {UnreadableFileError} for an unclosed quote (with the line where it opened), doubled columns, no header
 */
export async function* readCsv(
  chunks: AsyncIterable<Buffer>,
  limits: ReadLimits,
): AsyncGenerator<ReadItem[]> {
  const { delimiter, lineEnds, input } = await detectDelimiters(chunks);
  const problems: ReadItem[] = [];
  let lastLine = 0;
  /** The parser counts a line for each CR inside a value, beside the one for its LF. */
  let numReturns = 0;
  let hasHeader = false;
  const parser = parse({
    bom: true,
    delimiter,
    // Bytes as Latin-1, so that one field that is not UTF-8 spoils its own row only.
    encoding: 'latin1',
    max_record_size: limits.maxRecordBytes,
    record_delimiter: lineEnds,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    on_record: (record: string[], { lines }) => {
      numReturns += countIn(record, '\r');
      lastLine = lines - numReturns;
      hasHeader = true;
      const line = lastLine - countIn(record, '\n');
      // The record travels with its line; the types know records of text only.
      return { record, line } satisfies CsvRecord as unknown as string[];
    },
    on_skip: (error) => {
      const at = { line: lastLine + 1 };
      // What follows the fault is no value in quotes any more: the next line is a record of its own.
      if (error?.code === 'CSV_INVALID_CLOSING_QUOTE') state.quoting = false;
      const problem = describeSkip(error, at.line, limits);
      if (!hasHeader) throw new UnreadableFileError(at, `the header is no CSV: ${problem}`);
      const previous = problems.at(-1)?.at;
      // After its first fault a record is cut into pieces, each faulty again.
      if (previous === undefined || !('line' in previous) || previous.line !== at.line)
        problems.push({ at, problem });
      return undefined;
    },
  });
  const { state } = parser as unknown as { state: { quoting: boolean } };
  const records = Readable.from(input).pipe(parser) as AsyncIterable<unknown> as AsyncIterable<CsvRecord>;
  let columns: string[] | undefined;
  let items: ReadItem[] = [];
  try {
    for await (const { record, line } of records) {
      if (columns === undefined) columns = readHeader(record, line);
      else items.push(toItem(columns, record, line));
      if (items.length >= batchRows) {
        yield [...problems.splice(0), ...items];
        items = [];
      }
    }
  } catch (error) {
    if (items.length > 0) yield items;
    throw error;
  }
  items.push(...problems);
  if (items.length > 0) yield items;
}

function countIn(fields: string[], char: string): number {
  let count = 0;
  for (const field of fields)
    for (let at = field.indexOf(char); at >= 0; at = field.indexOf(char, at + 1)) count += 1;
  return count;
}

function toItem(columns: string[], record: string[], line: number): ReadItem {
  const at = { line };
  if (record.length !== columns.length) {
    return { at, problem: `${String(record.length)} values for ${String(columns.length)} columns` };
  }
  const value = new Dict();
  for (const [index, name] of columns.entries()) {
    const decoded = decodeField(record[index] ?? '');
    if (decoded === undefined) {
      return { at, problem: `column '${name}' is ${notUtf8(Buffer.from(record[index] ?? '', 'latin1'))}` };
    }
    value.set(name, decoded);
  }
  return { at, value };
}

function decodeField(latin1: string): string | undefined {
  if (/^[\x00-\x7f]*$/.test(latin1)) return latin1;
  const bytes = Buffer.from(latin1, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

function readHeader(record: string[], line: number): string[] {
  // Spreadsheets leave empty columns behind, and pandas an index without a name.
  const columns = record.map((name, index) => (decodeField(name) ?? name) || `column ${String(index + 1)}`);
  const doubled = columns.find((name, index) => columns.indexOf(name) !== index);
  if (doubled !== undefined) {
    throw new UnreadableFileError(
      { line },
      `the column '${doubled}' appears twice in the header; rename one`,
    );
  }
  return columns;
}

/** @throws {UnreadableFileError} for a quote that swallowed the rest of the file */
function describeSkip(error: CsvError | undefined, line: number, limits: ReadLimits): string {
  if (error?.code === 'CSV_QUOTE_NOT_CLOSED') {
    const problem = `a quote opened in the record at line ${String(line)} is never closed`;
    throw new UnreadableFileError({ line }, `${problem}; what follows it is not read`);
  }
  if (error?.code === 'CSV_INVALID_CLOSING_QUOTE')
    return 'text follows a closing quote; inside a value in quotes a quote is written twice';
  if (error?.code !== 'CSV_MAX_RECORD_SIZE') return error?.message ?? 'not a CSV record';
  return `a record of more than ${formatBytes(limits.maxRecordBytes)}, or a quote that is not closed`;
}

/**
 * The delimiter that cuts the header line into most parts (comma, semicolon or tab), and what ends a line: LF, with a CR
 * before it or without, whichever a line has; CR alone where it ends the header.
 */
async function detectDelimiters(
  chunks: AsyncIterable<Buffer>,
): Promise<{ delimiter: string; lineEnds: string[]; input: AsyncIterable<Buffer> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  const head = first.done === true ? Buffer.alloc(0) : first.value;
  const text = head.toString('latin1').replace(/"[^"]*"/g, '');
  const end = /\r(?=[^\n])|\n/.exec(text);
  const lineEnds = end?.[0] === '\r' ? ['\r'] : ['\r\n', '\n'];
  const unquoted = text.slice(0, end?.index);
  const counts = [',', ';', '\t'].map((delimiter) => ({
    delimiter,
    count: unquoted.split(delimiter).length,
  }));
  counts.sort((a, b) => b.count - a.count);
  async function* all() {
    if (head.length > 0) yield head;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
  }
  return { delimiter: counts[0]?.delimiter ?? ',', lineEnds, input: all() };
}
