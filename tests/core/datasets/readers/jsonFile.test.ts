import { describe, expect, it } from 'vitest';
import { readJson } from '../../../../main/core/datasets/readers/jsonFile.ts';
import { UnreadableFileError, type ReadItem } from '../../../../main/core/datasets/readers/rows.ts';
import { inChunks, joined } from '../fixtures.ts';

async function read(content: string, chunkBytes: number): Promise<ReadItem[]> {
  return joined(readJson(inChunks(content, chunkBytes), { maxFieldBytes: 1000, maxRecordBytes: 200 }));
}

const chunkSizes = [1, 2, 3, 7, 1000];

describe('a JSON file', () => {
  it('that is an array gives its elements, whatever brackets stand in their strings', async () => {
    const elements = ['{"text":"a]},[\\"{"}', '{"text":"b","x":[[1],{"y":"\\\\"}]}', '3'];
    for (const size of chunkSizes) {
      const items = await read(`\ufeff [ ${elements.join(' ,\n ')} ]\n`, size);
      expect(items).toEqual(elements.map((json, index) => ({ at: { row: index + 1 }, json })));
    }
  });

  it('that is an object gives the elements of its one array', async () => {
    for (const size of chunkSizes) {
      const items = await read(
        '{"version":"1","info":{"a":[1]},"data":[{"text":"a"},{"text":"b"}],"n":2}',
        size,
      );
      expect(items).toEqual([
        { at: { row: 1 }, json: '{"text":"a"}' },
        { at: { row: 2 }, json: '{"text":"b"}' },
      ]);
    }
  });

  it('that is one chat is one row', async () => {
    const chat = '{"messages":[{"role":"user","content":"a"}],"tags":["x"]}';
    for (const size of chunkSizes) expect(await read(chat, size)).toEqual([{ at: { row: 1 }, json: chat }]);
  });

  it('with two arrays tells which is not read', async () => {
    const items = await read('{"train":[{"text":"a"}],"test":[{"text":"b"}]}', 5);
    expect(items).toMatchObject([
      { json: '{"text":"a"}' },
      { problem: expect.stringContaining("'test'") as string },
    ]);
  });

  it('that holds an element too large tells its size and goes on', async () => {
    const items = await read(`[{"text":"${'x'.repeat(300)}"},{"text":"b"}]`, 16);
    expect(items).toMatchObject([
      { problem: expect.stringContaining('311 bytes') as string },
      { json: '{"text":"b"}' },
    ]);
  });

  it('that is empty has no rows', async () => {
    expect(await read('[]', 1)).toEqual([]);
  });

  it.each(['[{"text":"a"},', '{"data":[{"text":"a"}', '[{"text":"a"}'])(
    'cut short is refused: %s',
    async (content) => {
      await expect(read(content, 4)).rejects.toThrow(UnreadableFileError);
    },
  );

  it('with something after its end is refused', async () => {
    await expect(read('[1] 2', 100)).rejects.toThrow('more text follows');
  });
});
