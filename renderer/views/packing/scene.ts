import type { PackedExamples, PackingLayout } from '../../../main/contract/packing.ts';
import type { Spot } from './camera.ts';

/** A plan as it is drawn. */
export interface Scene {
  layout: PackingLayout;
  budget: number;
  numBins: number;
  /** First position in its bin, by placement. */
  begin: Int32Array;
  /** Index of its colour, by placement. */
  color: Uint8Array;
  /** Where supervision changes, by example; without it nothing is hatched. */
  examples: PackedExamples | undefined;
}

export type ColorBy = 'length' | 'source';
export const numColors = 6;

/** Shortest and longest of what is coloured, tokens. */
export interface LengthRange {
  from: number;
  to: number;
}

/** Powers of two around all lengths of a plan: what its colours stand for. */
export function rangeOf({ length }: PackingLayout): LengthRange {
  let [least, most] = [Infinity, 1];
  for (const value of length) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const from = 2 ** Math.floor(Math.log2(Math.max(1, Math.min(least, most))));
  return { from, to: Math.max(2 * from, 2 ** Math.ceil(Math.log2(most))) };
}

/** Colour of a length, on a log scale. */
export function rampIndex(length: number, { from, to }: LengthRange): number {
  const share = Math.log(Math.max(1, length) / from) / Math.log(to / from);
  return Math.max(0, Math.min(numColors - 1, Math.floor(share * numColors)));
}

export function sceneOf(
  layout: PackingLayout,
  budget: number,
  examples: PackedExamples | undefined,
  colorBy: ColorBy,
  range: LengthRange = rangeOf(layout),
): Scene {
  const { length, positions, binOffsets, example } = layout;
  const begin = new Int32Array(length.length);
  const color = new Uint8Array(length.length);
  for (let bin = 0; bin + 1 < binOffsets.length; bin++) {
    let at = 0;
    for (let i = binOffsets[bin] ?? 0; i < (binOffsets[bin + 1] ?? 0); i++) {
      begin[i] = at;
      at += positions?.[i] ?? length[i] ?? 0;
      color[i] =
        colorBy === 'length'
          ? rampIndex(length[i] ?? 0, range)
          : Math.min(numColors - 1, examples?.source[example[i] ?? 0] ?? 0);
    }
  }
  return { layout, budget, numBins: Math.max(0, binOffsets.length - 1), begin, color, examples };
}

/** The placement at a position of a bin, or undefined over padding, the free rest and beyond the bins. */
export function placementAt({ layout, begin, numBins }: Scene, { bin, position }: Spot): number | undefined {
  if (bin < 0 || bin >= numBins || position < 0) return undefined;
  const [first, end] = [layout.binOffsets[bin] ?? 0, layout.binOffsets[bin + 1] ?? 0];
  const i = lastAtOrBefore(begin, position, first, end);
  return i < first || position >= (begin[i] ?? 0) + (layout.length[i] ?? 0) ? undefined : i;
}

/**
 * How many placements some of whose positions lie in bins `from` to `to` (exclusive) at positions `left` to `right`
 * (exclusive). Work grows with the bins only where not all of their width is asked for.
 */
export function tilesWithin(
  { layout, begin, budget }: Scene,
  { from, to }: { from: number; to: number },
  { left, right }: { left: number; right: number },
): number {
  const { binOffsets, length } = layout;
  if (left <= 0 && right >= budget) return Math.max(0, (binOffsets[to] ?? 0) - (binOffsets[from] ?? 0));
  let count = 0;
  for (let bin = from; bin < to; bin++) {
    const [first, end] = [binOffsets[bin] ?? 0, binOffsets[bin + 1] ?? 0];
    let i = Math.max(first, lastAtOrBefore(begin, left, first, end));
    if ((begin[i] ?? 0) + (length[i] ?? 0) <= left) i++;
    for (; i < end && (begin[i] ?? 0) < right; i++) count++;
  }
  return count;
}

/** Index of the last of the rising `values[from … to]` that is at most `wanted`; `from - 1` where none is. */
export function lastAtOrBefore(values: Int32Array, wanted: number, from: number, to: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Writes where supervision changes inside a placement, as positions of its bin, into `out` and returns how many: the
 * first stretch is context, from the placement's begin, and may be empty. What the placement begins with is never
 * learned, whatever the mask says: nothing before it predicts it.
 */
export function flipsOf({ layout, begin, examples }: Scene, placement: number, out: number[]): number {
  const [at, length] = [begin[placement] ?? 0, layout.length[placement] ?? 0];
  if (examples === undefined) {
    out[0] = at;
    return 1;
  }
  const example = layout.example[placement] ?? 0;
  const start = layout.start[placement] ?? 0;
  const { flips, flipOffsets } = examples;
  const [first, end] = [flipOffsets[example] ?? 0, flipOffsets[example + 1] ?? 0];
  let next = lastAtOrBefore(flips, start, first, end) + 1;
  let count = 0;
  // An odd number of flips up to the first token: the placement begins within a supervised stretch.
  if ((next - first) % 2 === 1) out[count++] = at + 1;
  for (; next < end; next++) {
    const position = (flips[next] ?? 0) - start;
    if (position >= length) break;
    // A stretch of one token at the very begin is not learned: it vanishes.
    if (count === 1 && out[0] === at + position) count = 0;
    else out[count++] = at + position;
  }
  return count;
}

/** Supervised tokens of a placement; undefined where the masks are not there. */
export function supervisedIn(scene: Scene, placement: number): number | undefined {
  if (scene.examples === undefined) return undefined;
  const flips: number[] = [];
  const count = flipsOf(scene, placement, flips);
  const end = (scene.begin[placement] ?? 0) + (scene.layout.length[placement] ?? 0);
  let sum = 0;
  for (let k = 0; k < count; k += 2) sum += (k + 1 < count ? (flips[k + 1] ?? end) : end) - (flips[k] ?? end);
  return sum;
}

/** A tile in words' reach: what the card, the table and the files say of a placement. */
export interface TileFacts {
  placement: number;
  bin: number;
  example: number;
  /** First token of the example that stands here: above 0 for a later piece of a split text. */
  start: number;
  length: number;
  /** First position in the bin. */
  begin: number;
  supervised: number | undefined;
}

export function factsOf(scene: Scene, bin: number, placement: number): TileFacts {
  const { layout, begin } = scene;
  return {
    placement,
    bin,
    example: layout.example[placement] ?? 0,
    start: layout.start[placement] ?? 0,
    length: layout.length[placement] ?? 0,
    begin: begin[placement] ?? 0,
    supervised: supervisedIn(scene, placement),
  };
}

/** The same plan, cut after some bins, in arrays of its own. */
export function firstBins(layout: PackingLayout, count: number): PackingLayout {
  const binOffsets = layout.binOffsets.slice(0, count + 1);
  const end = binOffsets.at(-1) ?? 0;
  const { example, start, length, positions } = layout;
  return {
    example: example.slice(0, end),
    start: start.slice(0, end),
    length: length.slice(0, end),
    ...(positions && { positions: positions.slice(0, end) }),
    binOffsets,
  };
}
