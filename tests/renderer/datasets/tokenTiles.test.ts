import { describe, expect, it } from 'vitest';
import { whyNames, type ExampleOrigins, type ExampleTokens } from '../../../main/contract/datasets.ts';
import { findTokens } from '../../../renderer/views/datasets/findTokens.ts';
import {
  countParts,
  glyphsOf,
  runsOf,
  sectionsOf,
  stretchesOf,
  whyOf,
} from '../../../renderer/views/datasets/tokenTiles.ts';

const encode = (text: string) => new TextEncoder().encode(text);
const drawn = (bytes: Uint8Array) => glyphsOf(bytes).map(({ text, isMark }) => (isMark ? `[${text}]` : text));

/** An example of tokens given as text or bytes, each with whether it is learned. */
function exampleOf(tokens: [string | Uint8Array, number][]): ExampleTokens {
  const parts = tokens.map(([token]) => (typeof token === 'string' ? encode(token) : token));
  const byteOffsets = new Int32Array(parts.length + 1);
  for (const [t, { length }] of parts.entries()) byteOffsets[t + 1] = (byteOffsets[t] ?? 0) + length;
  return {
    index: 0,
    file: '/data/chats.jsonl',
    line: 1,
    kind: 'chat',
    ids: Int32Array.from(parts, (_, t) => 100 + t),
    supervised: Uint8Array.from(tokens, ([, mark]) => mark),
    special: new Uint8Array(parts.length),
    bytes: Uint8Array.from(parts.flatMap((part) => [...part])),
    byteOffsets,
  };
}

describe('how a token is drawn', () => {
  it('shows white space, and breaks the line where the token does', () => {
    expect(drawn(encode(' a b'))).toEqual(['·a·b']);
    expect(drawn(encode('.\n\n'))).toEqual(['.', '[↵]', '\n', '[↵]', '\n']);
    expect(drawn(encode('\t\r'))).toEqual(['[→]', '[␍]']);
  });

  it('shows part of a character as its bytes, a whole one as itself', () => {
    expect(drawn(Uint8Array.of(0xf0, 0x9f))).toEqual(['[F0 9F]']);
    expect(drawn(encode('🚲'))).toEqual(['🚲']);
    expect(drawn(new Uint8Array(0))).toEqual(['[∅]']);
  });
});

describe('an example', () => {
  const [head, tail] = [encode('é').subarray(0, 1), encode('é').subarray(1)];
  const example = exampleOf([
    ['user', 0],
    [head, 0],
    [tail, 0],
    ['Yes', 1],
    ['.', 1],
    ['\n', 0],
  ]);
  const origins: ExampleOrigins = {
    turns: [
      { role: 'user', message: 0, from: 0, to: 3 },
      { role: 'assistant', message: 1, from: 3, to: 6 },
    ],
    why: Uint8Array.from([0, 3, 3, 5, 8, 0]),
  };

  it('reads as text across tokens that share a character', () => {
    expect(stretchesOf(example, 0, 6)).toEqual([
      { text: 'useré', isSupervised: false },
      { text: 'Yes.', isSupervised: true },
      { text: '\n', isSupervised: false },
    ]);
  });

  it('has its turns, or is one stretch where they are not known', () => {
    expect(sectionsOf(example, origins).map(({ role, numSupervised }) => [role, numSupervised])).toEqual([
      ['user', 0],
      ['assistant', 2],
    ]);
    expect(sectionsOf(example, undefined)).toMatchObject([
      { role: 'chat', from: 0, to: 6, numSupervised: 2 },
    ]);
  });

  it('counts what is learned and what is not by part', () => {
    expect(countParts(example, origins)).toEqual({
      learned: [
        ['Content', 1],
        ['End of turn', 1],
      ],
      context: [
        ['Template’s own text', 2],
        ['User', 2],
      ],
    });
    expect(runsOf(example.supervised)).toEqual([
      [0, 3, false],
      [3, 5, true],
      [5, 6, false],
    ]);
  });

  it('finds text across tokens and whatever its case, and ids', () => {
    expect(findTokens(example, 'yes.')).toEqual([3]);
    expect(findTokens(example, 'é')).toEqual([1]);
    expect(findTokens(example, '104')).toEqual([4]);
    expect(findTokens(example, 'nothing')).toEqual([]);
  });
});

it('gives every origin a reason, learned or not', () => {
  for (const why of whyNames)
    for (const isSupervised of [true, false])
      expect(whyOf(why, isSupervised, 3, { role: 'user', message: 0 })).toMatch(/^[A-Z].*, turn 1\b.*\.$/);
});
