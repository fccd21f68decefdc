import { open } from 'node:fs/promises';
import { isUtf8 } from 'node:buffer';
import { basename, extname } from 'node:path';
import { compressionEndings, dataFormats, type DataFormat } from '../../../contract/dataFormats.ts';
import { readBytes, type Compression } from './source.ts';

/** What a file is by its content; its name decides only between formats that the content allows. */
export type Sniffed =
  | { format: DataFormat; compression: Compression; nameSays: DataFormat | undefined }
  | { problem: string; hint?: string };

/** The format of files whose names end so, without the dot. */
export function formatOfEnding(ending: string): DataFormat | undefined {
  const names = Object.keys(dataFormats) as DataFormat[];
  return names.find((name) => (dataFormats[name] as readonly string[]).includes(ending));
}

const headBytes = 1 << 16;
const compressions = new RegExp(`\\.(${compressionEndings.join('|')})$`);

/** The format that a file's name claims, a compression's extension taken off. */
export function formatOfName(path: string): DataFormat | undefined {
  const name = basename(path).toLowerCase().replace(compressions, '');
  return formatOfEnding(extname(name).slice(1));
}

/** @throws what the file system says */
export async function sniffFile(path: string): Promise<Sniffed> {
  const raw = await readHead(path);
  if (raw.length === 0) return { problem: 'the file is empty' };
  const compression = compressionOf(raw);
  const head = compression === 'none' ? raw : await decompressedHead(path, compression);
  if (head === undefined) return { problem: `the ${compression} data is damaged` };
  const nameSays = formatOfName(path);
  const format = sniffContent(head, nameSays);
  if (typeof format === 'object') return format;
  if (format === 'parquet' && compression !== 'none') {
    return { problem: 'a Parquet file inside a compressed one is not read', hint: 'Decompress it first.' };
  }
  return { format, compression, nameSays };
}

function compressionOf(head: Buffer): Compression {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip';
  return head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528 ? 'zstd' : 'none';
}

function sniffContent(
  head: Buffer,
  nameSays: DataFormat | undefined,
): DataFormat | { problem: string; hint?: string } {
  const known = knownBinary(head);
  if (known !== undefined) return known;
  if (head.toString('latin1', 0, 4) === 'PAR1') return 'parquet';
  if (isBinary(head)) return { problem: 'a binary file, no text and no Parquet', hint: exportHint };
  if (nameSays === 'parquet')
    return { problem: 'named .parquet, but it does not begin as a Parquet file does' };
  const text = head.toString('utf8').replace(/^\ufeff/, '');
  const lines = text.split('\n');
  const isWholeHead = head.length < headBytes;
  const first = lines.find((line) => line.trim() !== '')?.trim() ?? '';
  const json = sniffJson(first, lines.length > 1 || isWholeHead, text, nameSays);
  if (json !== undefined) return json;
  if (nameSays !== undefined) return nameSays;
  if (!isUtf8(head.subarray(0, wholeCharacters(head)))) return { problem: 'neither UTF-8 text nor Parquet' };
  return /^"?(prompt|instruction|text|messages|conversations|completion)"?[,;\t]/.test(first) ? 'csv' : 'txt';
}

function sniffJson(
  firstLine: string,
  isWholeLine: boolean,
  text: string,
  nameSays: DataFormat | undefined,
): DataFormat | undefined {
  const begins = firstLine[0];
  if (begins !== '{' && begins !== '[') return undefined;
  const value = isWholeLine ? tryParse(firstLine) : undefined;
  const isRow = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (nameSays === 'jsonl') {
    const isPretty = value === undefined && isWholeLine && /^(\[|\{|\[\s*\{.*)$/.test(firstLine);
    return isPretty || (Array.isArray(value) && value.length > 0 && isRowLike(value[0])) ? 'json' : 'jsonl';
  }
  if (nameSays === 'json') return isRow && moreThanOneLine(text) ? 'jsonl' : 'json';
  if (isRow) return 'jsonl';
  const looksLikeJson = begins === '[' ? /^\[\s*(\{|$)/.test(firstLine) : /^\{\s*("|$)/.test(firstLine);
  return looksLikeJson && (nameSays === undefined || isWholeLine) ? 'json' : undefined;
}

function isRowLike(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function moreThanOneLine(text: string): boolean {
  return text.split('\n', 50).filter((line) => line.trim() !== '').length > 1;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const exportHint = 'Export it as JSON Lines, CSV or Parquet.';
const unpackHint = 'Unpack it and import the folder.';

/** Files that people mistake for data, by how they begin: what they are, and the way out. */
const binaries: readonly (readonly [begins: RegExp, problem: string, hint: string])[] = [
  [/^PK\x03\x04[^]{26}(\[Content_Types\]|_rels\/|xl\/)/, 'an office document, not text', exportHint],
  [/^PK\x03\x04/, 'a zip archive', unpackHint],
  [/^[^]{257}ustar/, 'a tar archive', unpackHint],
  [/^\x1f\x8b/, 'compressed twice', 'Decompress it once.'],
  [/^BZh\d1AY&SY/, 'bzip2 data, which is not read through', 'Decompress it, or use .gz or .zst.'],
  [/^\xfd7zXZ\0/, 'xz data, which is not read through', 'Decompress it, or use .gz or .zst.'],
  [/^7z\xbc\xaf/, 'a 7z archive', unpackHint],
  [/^(ARROW1|FEA1)/, 'an Arrow file', 'Save it as Parquet.'],
  [/^SQLite format 3\0/, 'a SQLite database', exportHint],
  [/^\x80[\x02-\x05][^]*[\0-\x08\x80-\xff]/, 'a Python pickle', exportHint],
  [/^%PDF/, 'a binary file (PDF), no text and no Parquet', 'Export its text.'],
  [/^\x7fELF/, 'a binary file (a program), no text and no Parquet', 'Give data files.'],
  [
    /^\x89PNG|^\xff\xd8\xff/,
    'a binary file (a picture), no text and no Parquet',
    'Only text can be learned.',
  ],
  [/^(\xff\xfe|\xfe\xff)/, 'UTF-16 text, not UTF-8', 'Save the file as UTF-8.'],
  [
    /^([\x09\x0a\x0d\x20-\x7e]\0){4}|^(\0[\x09\x0a\x0d\x20-\x7e]){4}/,
    'UTF-16 text, not UTF-8',
    'Save the file as UTF-8.',
  ],
];

function knownBinary(head: Buffer): { problem: string; hint: string } | undefined {
  const begin = head.toString('latin1', 0, 512);
  const known = binaries.find(([begins]) => begins.test(begin));
  return known && { problem: known[1], hint: known[2] };
}

/** A zero byte now and then in what is text otherwise is the fault of its row alone. */
function isBinary(head: Buffer): boolean {
  let numZeros = 0;
  for (let at = head.indexOf(0); at >= 0; at = head.indexOf(0, at + 1)) numZeros += 1;
  return numZeros > 0 && (numZeros * 100 > head.length || !isUtf8(head.subarray(0, wholeCharacters(head))));
}

/** Up to where the last character surely is whole. */
function wholeCharacters(head: Buffer): number {
  return head.length < headBytes ? head.length : head.length - 4;
}

async function readHead(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const buffer = Buffer.alloc(headBytes);
    const { bytesRead } = await file.read(buffer, 0, headBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function decompressedHead(path: string, compression: Compression): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let numBytes = 0;
  try {
    for await (const chunk of readBytes(path, compression)) {
      pieces.push(chunk);
      numBytes += chunk.length;
      if (numBytes >= headBytes) break;
    }
  } catch {
    if (numBytes === 0) return undefined;
  }
  return Buffer.concat(pieces).subarray(0, headBytes);
}
