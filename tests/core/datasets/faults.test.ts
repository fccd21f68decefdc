import {
  chmodSync,
  createWriteStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, it } from 'vitest';
import { CacheStore } from '../../../main/core/datasets/cache/cacheStore.ts';
import { CacheWriter } from '../../../main/core/datasets/cache/cacheWriter.ts';
import { defaultReadOptions } from '../../../main/core/datasets/options.ts';
import { describeFileError } from '../../../main/core/datasets/readers/files.ts';
import {
  call,
  chatMl,
  allSkipped,
  importText,
  makeModel,
  openDatasets,
  request,
  tempFolder,
  writeFiles,
} from './fixtures.ts';

const reason = (text: string) => expect.stringContaining(text) as string;
const row = '{"text":"a b"}\n';

async function parquet(): Promise<Buffer> {
  const folder = tempFolder();
  const path = join(folder, 'x.parquet');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run(
    `COPY (SELECT 'text ' || i AS text FROM range(2000) t(i)) TO '${path}' (FORMAT parquet)`,
  );
  connection.closeSync();
  return readFileSync(path);
}

describe('files that are not what they seem', () => {
  it('a wrong extension is read as what it is, and told', async () => {
    const { dataset, manifest } = await importText(row, { name: 'rows.csv' });
    expect(dataset.rows).toBe(1);
    expect(manifest.warnings).toMatchObject([{ code: 'wrongExtension', count: 1 }]);
  });

  it.each([
    ['gz', (text: string) => gzipSync(text)],
    ['zst', (text: string) => zstdCompressSync(text)],
  ])('.%s is read through, with the lines of the text', async (extension, compress) => {
    const { dataset, skipped } = await importText(compress(`${row}\n{"text":\n${row}`), {
      name: `a.jsonl.${extension}`,
    });
    expect(dataset.rows).toBe(2);
    expect(skipped).toMatchObject([{ line: 3, reason: reason('no JSON') }]);
  });

  it('a .gz or .zst cut short keeps what came before and names the rest', async () => {
    const text = Array.from(
      { length: 40_000 },
      (_, i) => `{"text":"row ${String(i)} ${String(Math.sin(i))}"}\n`,
    );
    const whole = gzipSync(text.join(''));
    const { dataset, skipped } = await importText(whole.subarray(0, whole.length - 20_000), {
      name: 'a.jsonl.gz',
    });
    expect(dataset.rows).toBeGreaterThan(1000);
    expect(skipped.at(-1)?.reason).toContain('gzip data is damaged');
    expect(skipped.at(-1)).toMatchObject({ line: dataset.rows + 1 });
  });

  it.each([
    ['a zip', 'PK\u0003\u0004x', 'zip archive', 'Unpack'],
    [
      'a workbook',
      `PK\u0003\u0004${'\0'.repeat(26)}[Content_Types].xml`,
      'an office document',
      'Export it as JSON Lines',
    ],
    ['a tar', `a.jsonl${'\0'.repeat(250)}ustar`, 'tar archive', 'Unpack'],
    ['gz within gz', gzipSync(gzipSync(row)), 'compressed twice', 'Decompress it once'],
    ['bzip2', 'BZh91AY&SY\0', 'bzip2', 'Decompress'],
    ['xz', Buffer.from('\u00fd7zXZ\0', 'latin1'), 'xz data', 'Decompress'],
    ['Arrow', 'ARROW1\0\0', 'Arrow', 'Parquet'],
    ['SQLite', 'SQLite format 3\0', 'SQLite', 'Export'],
    ['a pickle', Buffer.from([0x80, 4, 0x95, 0, 0]), 'pickle', 'Export'],
    ['a PDF', '%PDF-1.4\0\0', 'PDF', 'Export its text'],
    ['a picture', Buffer.from('\u0089PNG\r\n\0\0', 'latin1'), 'picture', 'Only text'],
    ['bytes of any kind', Buffer.from([1, 0, 2, 0, 3, 0xff, 0]), 'a binary file', 'Export'],
    ['UTF-16', Buffer.from('\ufeff{"text":"a"}', 'utf16le'), 'UTF-16', 'UTF-8'],
    ['UTF-16 without its mark', Buffer.from('{"text":"a"}', 'utf16le'), 'UTF-16', 'UTF-8'],
  ])('%s is named, with the way out', async (_, content, expected, way) => {
    await expect(importText(content)).rejects.toMatchObject({
      code: 'noRows',
      message: reason(expected),
      hint: reason(way),
    });
  });

  it('a zero byte spoils its own row only', async () => {
    const { dataset, skipped } = await importText(`${row.repeat(20)}{"text":"a\0b"}\n${row}`);
    expect(dataset.rows).toBe(21);
    expect(skipped).toMatchObject([{ line: 21, reason: reason('control character') }]);
  });

  it('lines that end in CR alone are named as such', async () => {
    const skipped = await allSkipped('{"text":"a"}\r{"text":"b"}\r');
    expect(skipped).toMatchObject([{ line: 1, reason: reason('save it with LF') }]);
  });

  it('a Parquet file cut short, or damaged within, is named', async () => {
    const whole = await parquet();
    await expect(importText(whole.subarray(0, whole.length - 100), { name: 'x.parquet' })).rejects.toThrow(
      'cut short',
    );
    const damaged = Buffer.from(whole);
    damaged.fill(0xff, 30, damaged.length - 1000);
    await expect(importText(damaged, { name: 'x.parquet' })).rejects.toThrow('cannot be read');
    expect((await importText(whole, { name: 'x.parquet' })).dataset.rows).toBe(2000);
  });
});

describe('columns', () => {
  it('of a CSV without a header are named as what they are, row by row', async () => {
    const skipped = await allSkipped('hello,world\nfoo,bar\n', { name: 'a.csv' });
    expect(skipped).toHaveLength(1);
    expect(skipped).toMatchObject([{ line: 2, reason: reason("'hello', 'world'") }]);
    expect(skipped[0]?.reason).toContain('--column text=NAME');
  });

  it('that appear twice are refused by name', async () => {
    await expect(importText('text,text\na,b\n', { name: 'a.csv' })).rejects.toThrow("'text' appears twice");
  });

  it('of CSV that hold JSON are read as JSON; what is none is named', async () => {
    const messages = '[{""role"":""user"",""content"":""q""},{""role"":""assistant"",""content"":""a""}]';
    const { dataset, manifest, skipped } = await importText(`messages\n"${messages}"\n"[{""role"":"\n`, {
      name: 'a.csv',
    });
    expect(dataset).toMatchObject({ rows: 1, format: 'messages' });
    expect(manifest.warnings).toMatchObject([{ code: 'jsonInCell', count: 1 }]);
    expect(skipped).toMatchObject([{ line: 3, reason: reason('no JSON') }]);
  });

  it('may be ten thousand', async () => {
    const names = Array.from({ length: 10_000 }, (_, i) => `c${String(i)}`);
    const csv = `${[...names, 'text'].join(',')}\n${[...names, 'the text'].join(',')}\n`;
    expect((await importText(csv, { name: 'a.csv' })).dataset).toMatchObject({ rows: 1, format: 'text' });
    const object = JSON.stringify(Object.fromEntries(names.map((name) => [name, name])));
    const { skipped } = await importText(`${row}${object}\n`);
    expect(skipped).toMatchObject([{ line: 2, reason: reason('and 9992 more') }]);
  });

  it('with numbers or pictures as content are refused by row', async () => {
    const message = (content: string) => `{"messages":[{"role":"user","content":${content}}]}\n`;
    const { skipped } = await importText(
      `${row}${message('7')}${message('[{"type":"image","url":"x"}]')}{"text":5}\n{"prompt":1,"completion":"x"}\n`,
    );
    expect(skipped.map(({ reason: why }) => why)).toEqual([
      reason('a number'),
      reason("part of type 'image'"),
      reason('a number'),
      reason('a number'),
    ]);
  });
});

describe('the file system', () => {
  it.each(['two words.jsonl', `it's "quoted".jsonl`, '🚲 ü.jsonl', 'new\nline.jsonl', '#50%.jsonl'])(
    'reads a file named %j',
    async (name) => {
      expect((await importText(row, { name })).dataset.rows).toBe(1);
    },
  );

  it('ends in a folder whose links go round, each file once', async () => {
    const folder = writeFiles({ 'a/rows.jsonl': row });
    symlinkSync(folder, join(folder, 'a', 'up'));
    symlinkSync(join(folder, 'a', 'rows.jsonl'), join(folder, 'again.jsonl'));
    const { datasets } = await openDatasets();
    const { dataset } = await datasets.import(request([folder], makeModel({ template: chatMl })), call());
    expect(dataset.rows).toBe(1);
  });

  it('that refuses to read says which file', async () => {
    const folder = writeFiles({ 'secret.jsonl': row });
    const path = join(folder, 'secret.jsonl');
    chmodSync(path, 0);
    const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' });
    expect(describeFileError(denied, path)).toMatchObject({ code: 'noPermission', message: reason(path) });
    if (process.getuid?.() === 0) return;
    const { datasets } = await openDatasets();
    await expect(datasets.import(request([path], makeModel()), call())).rejects.toThrow('no permission');
  });

  it('whose disk fills up in the middle of a cache leaves nothing half-written', () => {
    const home = tempFolder();
    // A device that is always full stands where the first shard goes.
    const dir = join(home, 'cache');
    const writer = new CacheWriter(dir, 4);
    symlinkSync('/dev/full', join(writer.partial, `shard-00000.safetensors.${String(process.pid)}.tmp`));
    const example = { ids: Int32Array.of(1, 2, 3, 4, 5), supervised: new Uint8Array(5).fill(1) };
    const add = () => {
      writer.add({ ...example, kind: 'text', sourceFile: 0, sourceAt: 1 }, 4);
    };
    let failure: unknown;
    try {
      add();
    } catch (error) {
      failure = describeFileError(error, dir);
    }
    expect(failure).toMatchObject({ code: 'diskFull', message: reason(dir) });
    writer.abandon();
    expect(readdirSync(home)).toEqual([]);
  });

  it('where a file changes while it is read is told, and no cache of neither version stays', async () => {
    const home = tempFolder();
    const { datasets } = await openDatasets(home);
    const text = `{"text":"${'word '.repeat(400)}"}\n`.repeat(4000);
    const folder = writeFiles({ 'a.jsonl': text });
    const path = join(folder, 'a.jsonl');
    let isChanged = false;
    const importing = datasets.import(request([path], makeModel({ template: chatMl })), {
      signal: new AbortController().signal,
      progress: ({ what, done }) => {
        if (what !== 'Importing' || done === 0 || isChanged) return;
        isChanged = true;
        writeFileSync(path, `${text}${row}`);
      },
    });
    await expect(importing).rejects.toThrow('a.jsonl changed while it was read');
    expect(readdirSync(join(home, 'caches'))).toEqual([]);
  });
});

describe('room on the disk', () => {
  it('is made by removing the least recently used cache, never one in use', async () => {
    const home = tempFolder();
    const { datasets, context } = await openDatasets(home);
    const model = makeModel({ template: chatMl });
    const keys: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      const folder = writeFiles({ [`${name}.jsonl`]: `{"text":"${name} ${'words '.repeat(50)}"}\n` });
      keys.push(
        (await datasets.import(request([join(folder, `${name}.jsonl`)], model), call())).dataset.cacheKey,
      );
    }
    const [first = '', second = '', third = ''] = keys;
    const store = new CacheStore(context.db, context.home.caches, 1);
    const held = store.lease(first);
    store.add(store.lease(third).manifest);
    expect(readdirSync(context.home.caches).sort()).toEqual([first, third].sort());
    expect(store.has(second)).toBe(false);
    held.release();
    store.add(held.manifest);
    expect(store.has(first)).toBe(true);
  });
});

it('memory stays bounded where one line is far larger than all limits', async () => {
  const folder = tempFolder();
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'long.jsonl');
  const file = createWriteStream(path);
  const piece = Buffer.alloc(1 << 20, 'x');
  file.write(`${row}{"text":"`);
  for (let i = 0; i < 600; i++) if (!file.write(piece)) await once(file, 'drain');
  file.end(`"}\n${row}`);
  await once(file, 'finish');
  const { datasets } = await openDatasets();
  const before = process.memoryUsage.rss();
  let most = 0;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 50);
  const { dataset } = await datasets.import(
    request([path], makeModel({ template: chatMl }), { read: defaultReadOptions }),
    call(),
  );
  clearInterval(timer);
  expect(dataset).toMatchObject({ rows: 2, numSkipped: 1 });
  expect(await datasets.skipped(dataset.cacheKey, 0, 10)).toMatchObject([
    { line: 2, reason: reason('a line of 600.0 MB') },
  ]);
  expect(most - before).toBeLessThan(400 << 20);
}, 120_000);
