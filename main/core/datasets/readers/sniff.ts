import { open } from 'node:fs/promises';
import { isUtf8 } from 'node:buffer';
import { basename, extname } from 'node:path';
import { readBytes, type Compression } from './source.ts';
import type { DataFormat } from './rows.ts';

/** What a file is by its content; its name decides only between formats that the content allows. */
export type Sniffed =
  | { format: DataFormat; compression: Compression; nameSays: DataFormat | undefined }
  | { problem: string; hint?: string };

export const formatByExtension: Readonly<Record<string, DataFormat>> = {
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.json': 'json',
  '.csv': 'csv',
  '.tsv': 'csv',
  '.parquet': 'parquet',
  '.txt': 'txt',
  '.text': 'txt',
  '.md': 'txt',
};

const headBytes = 1 << 16;
const compressionExtensions = new Set(['.gz', '.zst', '.zstd']);

/** The format that a file's name claims, a compression's extension taken off. */
export function formatOfName(path: string): DataFormat | undefined {
  let name = basename(path).toLowerCase();
  if (compressionExtensions.has(extname(name))) name = name.slice(0, -extname(name).length);
  return formatByExtension[extname(name)];
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
  const magic = head.toString('latin1', 0, 4);
  if (magic === 'PAR1') return 'parquet';
  if (magic === 'PK\u0003\u0004')
    return { problem: 'a zip archive', hint: 'Unpack it and import the folder.' };
  if (/^(\xff\xfe|\xfe\xff)/.test(magic))
    return { problem: 'UTF-16 text, not UTF-8', hint: 'Save the file as UTF-8.' };
  if (head.includes(0)) return { problem: `a binary file${describeMagic(magic)}, no text and no Parquet` };
  if (nameSays === 'parquet')
    return { problem: 'named .parquet, but it does not begin as a Parquet file does' };
  const text = head.toString('utf8').replace(/^\ufeff/, '');
  const lines = text.split('\n');
  const isWholeHead = head.length < headBytes;
  const first = lines.find((line) => line.trim() !== '')?.trim() ?? '';
  const json = sniffJson(first, lines.length > 1 || isWholeHead, text, nameSays);
  if (json !== undefined) return json;
  if (nameSays !== undefined) return nameSays;
  if (!isUtf8(head.subarray(0, Math.max(0, head.length - 4))))
    return { problem: 'neither UTF-8 text nor Parquet' };
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

function describeMagic(magic: string): string {
  if (magic.startsWith('%PDF')) return ' (PDF)';
  if (magic === '\u007fELF') return ' (a program)';
  if (magic.startsWith('\u0089PNG')) return ' (a picture)';
  return '';
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
