import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  SafetensorsError,
  SafetensorsFile,
  withSafetensors,
  writeSafetensors,
} from '../../main/core/safetensors.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'safetensors-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function rawFile(header: string, dataBytes = 0, claimed?: bigint): string {
  const path = join(folder, 'raw.safetensors');
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(claimed ?? BigInt(Buffer.byteLength(header)));
  writeFileSync(path, Buffer.concat([length, Buffer.from(header), Buffer.alloc(dataBytes)]));
  return path;
}

test('tensors come back as they were written, whole and in part, pieces joined', () => {
  const path = join(folder, 'a.safetensors');
  writeSafetensors(
    path,
    {
      supervised: { dtype: 'U8', data: Uint8Array.of(1, 0, 1) },
      input_ids: { dtype: 'I32', data: [Int32Array.of(1, -2), Int32Array.of(2 ** 31 - 1, 4)], shape: [2, 2] },
      offsets: { dtype: 'I64', data: BigInt64Array.of(0n, 2n ** 53n + 1n) },
      empty: { dtype: 'F32', data: new Float32Array(0) },
    },
    { cache: 'é' },
  );
  withSafetensors(path, (file) => {
    expect(file.read('input_ids', 'I32')).toEqual(Int32Array.of(1, -2, 2 ** 31 - 1, 4));
    expect(file.read('input_ids', 'I32', 1, 3)).toEqual(Int32Array.of(-2, 2 ** 31 - 1));
    expect(file.read('supervised', 'U8')).toEqual(Uint8Array.of(1, 0, 1));
    expect(file.read('offsets', 'I64')).toEqual(BigInt64Array.of(0n, 2n ** 53n + 1n));
    expect(file.read('empty', 'F32')).toHaveLength(0);
    expect(file.info('input_ids').shape).toEqual([2, 2]);
    expect(file.metadata).toEqual({ cache: 'é' });
    for (const { dtype, begin } of file.tensors.values())
      expect(begin % { U8: 1, I32: 4, I64: 8, F32: 4 }[dtype as 'U8']).toBe(0);
    expect(() => file.read('offsets', 'I32')).toThrow(/'offsets' is I64, not I32/);
    expect(() => file.read('weights', 'I32')).toThrow(/no tensor 'weights'/);
    expect(() => file.read('supervised', 'U8', 2, 9)).toThrow(RangeError);
  });
  expect(readdirSync(folder)).toEqual(['a.safetensors']);
  expect((8 + Number(readFileSync(path).readBigUInt64LE())) % 8).toBe(0);
});

test("a reference file of Python's safetensors is read", () => {
  withSafetensors('tests/fixtures/golden/tiny/expected.safetensors', (file) => {
    const lengths = file.read('cu_seqlens', file.info('cu_seqlens').dtype as 'I32');
    expect(Number(lengths[0])).toBe(0);
    expect(Number(lengths.at(-1))).toBe(file.info('input_ids').shape.at(-1));
  });
});

test.each([
  [
    'shorter than a header',
    () => {
      const p = join(folder, 'x');
      writeFileSync(p, 'abc');
      return p;
    },
    /3 bytes long/,
  ],
  [
    'a header of 2^63 bytes',
    () => rawFile('{}', 0, 2n ** 63n),
    /claims a header of 9223372036854775808 bytes/,
  ],
  ['a header that is no JSON', () => rawFile('{"a":'), /not a JSON object/],
  ['a header that is a list', () => rawFile('[]'), /not a JSON object/],
  [
    'an unknown dtype',
    () => rawFile('{"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}', 1),
    /'a' has the unknown dtype "Q4"/,
  ],
  [
    'a negative axis',
    () => rawFile('{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}', 1),
    /'a' has no valid shape/,
  ],
  [
    'a shape that does not fit',
    () => rawFile('{"a":{"dtype":"I32","shape":[2],"data_offsets":[0,4]}}', 4),
    /'a' spans 4 bytes, its shape needs 8/,
  ],
  [
    'overlapping tensors',
    () =>
      rawFile(
        '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
        3,
      ),
    /'b' overlaps/,
  ],
  [
    'data beyond the file',
    () => rawFile('{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}', 3),
    /holds 3 bytes of data, its header describes 9/,
  ],
])('%s is refused by name', (_what, make, message) => {
  const path = make();
  expect(() => new SafetensorsFile(path)).toThrow(message);
  expect(() => new SafetensorsFile(path)).toThrow(SafetensorsError);
});

test('a truncated file is refused when it is opened', () => {
  const path = join(folder, 'cut.safetensors');
  writeSafetensors(path, { a: { dtype: 'I32', data: Int32Array.of(1, 2, 3) } });
  truncateSync(path, readFileSync(path).length - 5);
  expect(() => new SafetensorsFile(path)).toThrow(/holds 7 bytes of data, its header describes 12/);
});

test('a shape that disagrees with the data is refused before anything is written', () => {
  const path = join(folder, 'b.safetensors');
  expect(() => writeSafetensors(path, { a: { dtype: 'I32', data: Int32Array.of(1), shape: [3] } })).toThrow(
    /'a' holds 1/,
  );
  expect(readdirSync(folder)).toEqual([]);
});
