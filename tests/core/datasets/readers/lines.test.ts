import { describe, expect, it } from 'vitest';
import { readLines, type Line } from '../../../../main/core/datasets/readers/lines.ts';
import { inChunks, joined } from '../fixtures.ts';

async function read(content: string | Buffer, chunkBytes: number, maxBytes = 1 << 20): Promise<Line[]> {
  return joined(readLines(inChunks(content, chunkBytes), maxBytes));
}

describe('lines of a byte stream', () => {
  it('end at LF, with or without CR, and at the end of the file', async () => {
    for (const chunkBytes of [1, 2, 3, 100]) {
      expect(await read('a\r\nb\n\nc', chunkBytes)).toEqual([
        { line: 1, text: 'a' },
        { line: 2, text: 'b' },
        { line: 3, text: '' },
        { line: 4, text: 'c' },
      ]);
    }
  });

  it('keep characters that straddle two reads, U+2028 and a lone CR', async () => {
    const text = 'ä😀\u2028x\ry\u2029';
    for (let chunkBytes = 1; chunkBytes < 12; chunkBytes++) {
      expect(await read(`${text}\n`, chunkBytes)).toEqual([{ line: 1, text }]);
    }
  });

  it('lose a BOM at the start of the file only', async () => {
    const lines = await read('\ufeffa\n\ufeffb\n', 2);
    expect(lines).toEqual([
      { line: 1, text: 'a' },
      { line: 2, text: '\ufeffb' },
    ]);
  });

  it('name the first byte that is not UTF-8', async () => {
    const [line] = await read(Buffer.from([0x61, 0xc3, 0xa9, 0x62, 0xe9, 0x63]), 2);
    expect(line).toMatchObject({
      line: 1,
      problem: expect.stringContaining('byte 0xE9 at position 5') as string,
    });
  });

  it('name a character that ends too early at the end of a line', async () => {
    const [line] = await read(Buffer.from([0x61, 0xf0, 0x9f, 0x98, 0x0a]), 100);
    expect(line).toMatchObject({ problem: expect.stringContaining('byte 0xF0 at position 2') as string });
  });

  it('that are too long are told with their size and not kept', async () => {
    const lines = await read(`short\n${'x'.repeat(5000)}\nafter\n`, 64, 1000);
    expect(lines).toMatchObject([
      { line: 1, text: 'short' },
      { line: 2, problem: expect.stringContaining('5,000 bytes') as string },
      { line: 3, text: 'after' },
    ]);
  });
});
