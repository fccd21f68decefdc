import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, it } from 'vitest';
import { readParquet } from '../../../../main/core/datasets/readers/parquetFile.ts';
import { Dict, Float, type Value } from '../../../../main/core/datasets/template/values.ts';
import { importText, joined, tempFolder } from '../fixtures.ts';

async function writeParquet(select: string, options = 'COMPRESSION zstd'): Promise<string> {
  const path = join(tempFolder(), "it's.parquet");
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run(`COPY (${select}) TO '${path.replaceAll("'", "''")}' (FORMAT parquet, ${options})`);
  connection.closeSync();
  return path;
}

function plain(value: Value): unknown {
  if (value instanceof Dict)
    return Object.fromEntries(Array.from(value.entries(), ([k, v]) => [k, plain(v)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

async function read(path: string) {
  const items = await joined(readParquet(path, () => undefined));
  return items.map((item) => ('value' in item ? plain(item.value) : item));
}

describe('Parquet', () => {
  let path: string;

  it.each(['zstd', 'snappy', 'gzip', 'uncompressed'])(
    'gives exact integers, null and empty lists (%s)',
    async (codec) => {
      path = await writeParquet(
        `SELECT * FROM (VALUES (1::BIGINT, [{role: 'user', content: 'a'}]), (9007199254740993::BIGINT, []), (3::BIGINT, NULL)) t(id, messages)`,
        `COMPRESSION ${codec}`,
      );
      expect(await read(path)).toEqual([
        { id: 1, messages: [{ role: 'user', content: 'a' }] },
        { id: 9007199254740993n, messages: [] },
        { id: 3, messages: null },
      ]);
    },
  );

  it('keeps floats floats, at any depth', async () => {
    path = await writeParquet(`SELECT {a: 1.0::DOUBLE, b: [2::INTEGER]} AS x, MAP {'k': 1.5::DOUBLE} AS m`);
    expect(await read(path)).toEqual([{ x: { a: new Float(1), b: [2] }, m: { k: new Float(1.5) } }]);
  });

  it('calls columns by their own names, and refuses two of one name', async () => {
    path = await writeParquet(`SELECT 'x' AS "Prompt", 'ab' AS "prompz", {a: 1} AS s, 'c' AS completion`);
    const rename = (from: string, to: string) => {
      writeFileSync(path, readFileSync(path, 'latin1').replaceAll(from, to), 'latin1');
    };
    rename('prompz', 'prompt');
    expect(await read(path)).toEqual([{ Prompt: 'x', prompt: 'ab', s: { a: 1 }, completion: 'c' }]);
    rename('prompt', 'Prompt');
    await expect(read(path)).rejects.toThrow("the column 'Prompt' appears twice; rename one");
  });

  it('takes bytes for text where they are UTF-8, and for an object where they are none', async () => {
    path = await writeParquet(`SELECT '\\xC3\\xBC'::BLOB AS a, '\\xFF\\xD8'::BLOB AS b`);
    expect(await read(path)).toEqual([{ a: 'ü', b: { bytes: String.raw`\xFF\xD8` } }]);
  });

  it('cut short is refused, and so is a damaged footer', async () => {
    path = await writeParquet(`SELECT 'a' AS text FROM range(1000)`);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 20));
    await expect(read(path)).rejects.toThrow('cut short');
    writeFileSync(path, Buffer.concat([Buffer.from('PAR1'), Buffer.from('PAR1')]));
    await expect(read(path)).rejects.toThrow(/cannot be read: [^\n]+$/);
  });

  it('imports: empty and null lists are named by row, added nulls are pruned and counted', async () => {
    path = await writeParquet(
      `SELECT * FROM (VALUES
         ([{role: 'user', content: 'a', tool_calls: NULL::INTEGER[]}, {role: 'assistant', content: 'b', tool_calls: NULL}]),
         ([]), (NULL),
         ([{role: 'user', content: 'c', tool_calls: NULL}, {role: 'assistant', content: 'd', tool_calls: NULL}])) t(messages)`,
    );
    const { dataset, skipped, manifest } = await importText(readFileSync(path), { name: 'a.parquet' });
    expect(dataset).toMatchObject({ rows: 2, format: 'messages' });
    expect(skipped).toMatchObject([
      { row: 2, reason: "'messages' is an empty list" },
      { row: 3, reason: expect.stringContaining("'messages'") as string },
    ]);
    expect(manifest.warnings).toMatchObject([{ code: 'nullsPruned', count: 2, firstAt: { row: 1 } }]);
  });
});
