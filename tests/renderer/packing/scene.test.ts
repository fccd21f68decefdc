import { expect, test } from 'vitest';
import type { PackedExamples, PackingLayout } from '../../../main/contract/packing.ts';
import { meanRow, rasterBins, type Inks } from '../../../renderer/views/packing/raster.ts';
import {
  factsOf,
  flipsOf,
  placementAt,
  rampIndex,
  sceneOf,
  supervisedIn,
  tilesWithin,
} from '../../../renderer/views/packing/scene.ts';

/** Masks as the core sends them. */
function examplesOf(masks: number[][]): PackedExamples {
  const flips: number[] = [];
  const flipOffsets = [0];
  for (const mask of masks) {
    mask.forEach((bit, t) => {
      if (bit !== (mask[t - 1] ?? 0)) flips.push(t);
    });
    flipOffsets.push(flips.length);
  }
  return {
    flips: Int32Array.from(flips),
    flipOffsets: Int32Array.from(flipOffsets),
    source: new Int32Array(masks.length),
    sources: [{ path: 'a.jsonl', examples: masks.length }],
  };
}

const masks = [
  [0, 0, 1, 1],
  [1, 1, 0, 1, 1, 1],
  [0, 1],
];
/** Bin 0: example 0 padded to 6, example 2; bin 1: tokens 3 to 6 of example 1. */
const layout: PackingLayout = {
  example: Int32Array.of(0, 2, 1),
  start: Int32Array.of(0, 0, 3),
  length: Int32Array.of(4, 2, 3),
  positions: Int32Array.of(6, 2, 3),
  binOffsets: Int32Array.of(0, 2, 3),
};
const scene = sceneOf(layout, 10, examplesOf(masks), 'length', { from: 1, to: 64 });

test('tiles in sight are those of which something is seen, not those of whole bins', () => {
  const within = (left: number, right: number, from = 0, to = 2) =>
    tilesWithin(scene, { from, to }, { left, right });
  expect(within(0, 10)).toBe(3);
  expect(within(0, 1)).toBe(2);
  // Example 0 ends at 4, and what follows it until 6 is padding.
  expect(within(4, 6)).toBe(0);
  expect(within(3.5, 6)).toBe(1);
  expect(within(5, 6.5)).toBe(1);
  expect(within(2, 8)).toBe(3);
  expect(within(2, 8, 1)).toBe(1);
  expect(within(9, 10)).toBe(0);
});

test('a place finds its tile; padding, the free rest and beyond are nobody’s', () => {
  const at = (bin: number, position: number) => placementAt(scene, { bin, position });
  expect([0, 3, 4, 5, 6, 7, 8].map((position) => at(0, position))).toEqual([
    0,
    0,
    undefined,
    undefined,
    1,
    1,
    undefined,
  ]);
  expect([at(1, 0), at(1, 3), at(2, 0), at(-1, 0), at(0, -1)]).toEqual([
    2,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test('a tile knows what of it is learned: the first token of a piece never is', () => {
  expect([0, 1, 2].map((placement) => supervisedIn(scene, placement))).toEqual([2, 1, 2]);
  expect(factsOf(scene, 1, 2)).toEqual({
    placement: 2,
    bin: 1,
    example: 1,
    start: 3,
    length: 3,
    begin: 0,
    supervised: 2,
  });
});

test('flips say of every token of every piece what its mask says: all masks of seven tokens', () => {
  for (let code = 0; code < 128; code++) {
    const bits = Array.from({ length: 7 }, (_, t) => (code >> t) & 1);
    const examples = examplesOf([bits]);
    for (let start = 0; start < 7; start++) {
      for (let length = 1; start + length <= 7; length++) {
        const piece = {
          example: Int32Array.of(0),
          start: Int32Array.of(start),
          length: Int32Array.of(length),
          binOffsets: Int32Array.of(0, 1),
        };
        const flips: number[] = [];
        flips.length = flipsOf(sceneOf(piece, 16, examples, 'length'), 0, flips);
        const learned = Array.from({ length }, (_, t) => flips.filter((flip) => flip <= t).length % 2);
        const wanted = bits.slice(start, start + length).map((bit, t) => (t === 0 ? 0 : bit));
        if (learned.join() !== wanted.join())
          expect({ bits, start, learned }).toEqual({ bits, start, learned: wanted });
      }
    }
  }
});

test('colours stand for lengths on a log scale, and none falls off either end', () => {
  const range = { from: 16, to: 1024 };
  expect([1, 16, 31, 64, 1023, 1024, 9999].map((length) => rampIndex(length, range))).toEqual([
    0, 0, 0, 2, 5, 5, 5,
  ]);
});

const inks: Inks = {
  plain: [1, 2, 3, 4, 5, 6],
  context: [11, 12, 13, 14, 15, 16].map((ink) => [ink, ink, ink, ink]),
  pad: [99, 99, 99, 99],
  ground: 0,
  period: 4,
};

test('strips are drawn to the pixel: tiles, context, padding, the line between tiles', () => {
  const [width, height] = [100, 40];
  const target = new Uint32Array(width * height);
  rasterBins(target, scene, inks, {
    ...{ width, height, stride: width, left: 0, top: 0, density: 1 },
    ...{ perPosition: 10, perBin: 20, mostStrip: 18 },
  });
  const row = (y: number) => [...target.subarray(y * width, (y + 1) * width)];
  const colors = scene.color;
  const plain = (placement: number) => (colors[placement] ?? 0) + 1;
  // Example 0: two tokens of context, two supervised, the last pixel a line; then padding to position 6.
  expect(row(3).slice(0, 20)).toEqual(Array(20).fill(plain(0) + 10));
  expect(row(3).slice(20, 39)).toEqual(Array(19).fill(plain(0)));
  expect(row(3)[39]).toBe(0);
  expect(row(3).slice(40, 60)).toEqual(Array(20).fill(99));
  expect(row(3).slice(60, 70)).toEqual(Array(10).fill(plain(1) + 10));
  expect(row(3).slice(80)).toEqual(Array(20).fill(99));
  expect(row(17)).toEqual(row(3));
  expect(new Set(row(18))).toEqual(new Set([0]));
  expect(row(20).slice(30)).toEqual(Array(70).fill(99));
});

test('a texture keeps everything: a row is the exact mean of its bins', () => {
  const width = 7;
  const means = {
    plain: Array.from({ length: 6 }, () => [200, 0, 0] as const),
    context: Array.from({ length: 6 }, () => [0, 200, 0] as const),
    pad: [0, 0, 200] as const,
  };
  const out = new Uint32Array(width);
  meanRow(out, scene, means, 0, 2, new Float64Array(3 * (width + 2)));
  const sum = (shift: number) => out.reduce((total, pixel) => total + ((pixel >>> shift) & 255), 0);
  // Of 20 positions 5 are supervised, 4 context, 11 empty; each column loses less than one by rounding.
  const exact = (share: number) => (200 * width * share) / 20;
  expect(sum(0)).toBeGreaterThan(exact(5) - width);
  expect(sum(0)).toBeLessThanOrEqual(exact(5) + 1e-6);
  expect(sum(8)).toBeGreaterThan(exact(4) - width);
  expect(sum(16)).toBeGreaterThan(exact(11) - width);
  expect(out.every((pixel) => pixel >>> 24 === 255)).toBe(true);
});
