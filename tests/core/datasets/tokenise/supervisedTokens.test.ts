import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { supervisedTokens } from '../../../../main/core/datasets/tokenise/supervisedTokens.ts';
import { readTokenizerFile } from '../../../../main/core/datasets/tokenise/tokenizerFile.ts';
import { makeModel, templates } from '../fixtures.ts';

describe('which tokens are supervised', () => {
  const path = join(makeModel(), 'tokenizer.json');
  const { tokenizer, byteLevel } = readTokenizerFile(path);

  async function masks(text: string, spans: [number, number][]) {
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    const ids = encoding.getIds();
    return {
      tokens: encoding.getTokens(),
      byBytes: Array.from(supervisedTokens(text, spans, ids, encoding, byteLevel?.numBytes)),
      byOffsets: Array.from(supervisedTokens(text, spans, ids, encoding, undefined)),
    };
  }

  it('those wholly inside a span: one that straddles its edge is not', async () => {
    const { tokens, byBytes, byOffsets } = await masks('say hello w', [[5, 11]]);
    expect(tokens).toEqual(['s', 'a', 'y', 'Ġ', 'hello', 'Ġw']);
    expect(byBytes).toEqual([0, 0, 0, 0, 0, 1]);
    expect(byOffsets).toEqual(byBytes);
  });

  it('counted in code points, also where a character takes several tokens', async () => {
    const { byBytes, byOffsets } = await masks('😀é😀x', [[1, 3]]);
    expect(byBytes).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 1, 0]);
    expect(byOffsets).toEqual(byBytes);
  });

  it('by the library where its normalizer changes the text', async () => {
    const { byBytes, byOffsets } = await masks('e\u0301x e\u0301', [[0, 2]]);
    expect(byBytes).toEqual(byOffsets);
    expect(byBytes.includes(1)).toBe(true);
  });

  it('the same by bytes and by offsets for every span of every golden render', async () => {
    const golden = JSON.parse(readFileSync(join(templates, 'golden-supervision.json'), 'utf8')) as {
      text: string;
      supervised: [number, number][];
    }[];
    expect(golden.length).toBe(127);
    for (const { text, supervised } of golden) {
      const { byBytes, byOffsets } = await masks(text, supervised);
      expect(byBytes).toEqual(byOffsets);
    }
  });
});
