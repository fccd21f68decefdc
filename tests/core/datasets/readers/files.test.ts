import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { listDataFiles } from '../../../../main/core/datasets/readers/files.ts';
import { sniffFile } from '../../../../main/core/datasets/readers/sniff.ts';
import { tempFolder, writeFiles } from '../fixtures.ts';

describe('files to import', () => {
  it('are listed in sorted order, documents and hidden files left out, links followed once', async () => {
    const folder = writeFiles({
      'b.jsonl': '',
      'a/z.csv': '',
      'a/y.json.gz': '',
      'README.md': '',
      '.x.jsonl': '',
      'c.png': '',
    });
    symlinkSync(folder, join(folder, 'a', 'loop'));
    symlinkSync(join(folder, 'nowhere'), join(folder, 'gone.jsonl'));
    const found = await listDataFiles([folder, join(folder, 'b.jsonl')]);
    const names = found.map((path) => relative(folder, path));
    expect(names).toEqual(['a/y.json.gz', 'a/z.csv', 'b.jsonl']);
  });

  it('that are not there, or a folder without any, are named', async () => {
    const folder = tempFolder();
    await expect(listDataFiles([join(folder, 'nope.jsonl')])).rejects.toThrow('nope.jsonl');
    mkdirSync(join(folder, 'empty'));
    await expect(listDataFiles([join(folder, 'empty')])).rejects.toThrow('holds no data files');
    symlinkSync(join(folder, 'loop'), join(folder, 'loop'));
    await expect(listDataFiles([join(folder, 'loop')])).rejects.toThrow('loop is a loop of symbolic links');
  });

  it.skipIf(process.getuid?.() === 0)('that may not be read are named', async () => {
    const folder = writeFiles({ 'inner/a.jsonl': '' });
    chmodSync(join(folder, 'inner'), 0);
    await expect(listDataFiles([join(folder, 'inner')])).rejects.toThrow('no permission');
    chmodSync(join(folder, 'inner'), 0o755);
  });
});

const row = '{"text":"a"}\n';
const cases: [string, string | Uint8Array, unknown][] = [
  ['a.jsonl', row, { format: 'jsonl' }],
  ['a.jsonl', '[\n{"text":"a"},\n{"text":"b"}\n]', { format: 'json' }],
  ['a.jsonl', '[]\n{"text":"a"}\n', { format: 'jsonl' }],
  ['a.jsonl', '{"text":\n', { format: 'jsonl' }],
  ['a.json', row + row, { format: 'jsonl' }],
  ['a.json', '{"data":[{"text":"a"}]}', { format: 'json' }],
  ['a.json', '{\n  "text": "a"\n}\n', { format: 'json' }],
  ['a.csv', row, { format: 'jsonl' }],
  ['a.csv', 'text\na\n', { format: 'csv' }],
  ['a.txt', 'Once upon a time\n', { format: 'txt' }],
  ['a.txt', '[Scene: a room]\nHello\n', { format: 'txt' }],
  ['a.txt', row, { format: 'jsonl' }],
  ['data', 'prompt,completion\na,b\n', { format: 'csv' }],
  ['a.jsonl.gz', gzipSync(row), { format: 'jsonl', compression: 'gzip' }],
  ['a.jsonl.zst', zstdCompressSync(row), { format: 'jsonl', compression: 'zstd' }],
  ['a.jsonl', gzipSync(row), { format: 'jsonl', compression: 'gzip' }],
  ['a.jsonl', '', { problem: 'the file is empty' }],
  ['a.jsonl', 'PK\u0003\u0004rest', { problem: 'a zip archive' }],
  [
    'a.jsonl',
    Buffer.from('\u007fELF\0\0\0', 'latin1'),
    { problem: expect.stringContaining('a program') as string },
  ],
  ['a.csv', Buffer.from('\ufefftext\n', 'utf16le'), { problem: expect.stringContaining('UTF-16') as string }],
  ['a.parquet', row, { problem: expect.stringContaining('named .parquet') as string }],
];

describe('the format of a file', () => {
  it.each(cases)('%s: %j', async (name, content, expected) => {
    const folder = tempFolder();
    writeFileSync(join(folder, name), content);
    expect(await sniffFile(join(folder, name))).toMatchObject(expected as object);
  });
});
