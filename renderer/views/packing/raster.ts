import { leastTile, type Scale } from './camera.ts';
import { flipsOf, lastAtOrBefore, type Scene } from './scene.ts';

/** Pixels as a canvas keeps them: four bytes, red first. */
export type Pixel = number;

/** Colours of a picture, each pattern one pixel a phase along the diagonal. */
export interface Inks {
  /** By colour of a tile: what is supervised. */
  plain: Pixel[];
  /** By colour of a tile: context, hatched. */
  context: Pixel[][];
  /** Padding, and what is free at a bin's end. */
  pad: Pixel[];
  ground: Pixel;
  /** Phases of the patterns; all have as many. */
  period: number;
}

/** Device pixels; `left` in positions, `top` in bins, fractions allowed. */
export interface RasterView extends Scale {
  width: number;
  /** From one row of the picture to the next. */
  stride: number;
  height: number;
  left: number;
  top: number;
  /** Highest that a bin's strip is drawn: at token level words stand below it. */
  mostStrip: number;
  /** Device pixels of a CSS pixel. */
  density: number;
}

/** Lower than this, in CSS pixels, patterns are noise: their mean stands for them. */
const leastHatched = 5;

/** Space between two bins of this height, in device pixels. */
export function gapBetween(perBin: number, density: number): number {
  return perBin >= 9 * density ? 2 * density : perBin >= leastTile * density ? density : 0;
}

/**
 * Draws bins as strips into `target` [height × stride]: tiles in their colours, what is not supervised in each of them
 * hatched by its real mask, padding hatched. Work grows with the pixels and the stretches in sight alone.
 */
export function rasterBins(target: Uint32Array, scene: Scene, inks: Inks, view: RasterView): void {
  const { width, height, stride, top, perBin, mostStrip, density } = view;
  for (let y = 0; y < height; y++) target.fill(inks.ground, y * stride, y * stride + width);
  const gap = Math.round(gapBetween(perBin, density));
  const last = Math.min(scene.numBins, Math.ceil(top + height / perBin));
  const strips = Math.min(mostStrip, perBin - gap);
  const own = strips < leastHatched * density ? flatInks(inks) : inks;
  for (let bin = Math.max(0, Math.floor(top)); bin < last; bin++) {
    const y0 = Math.round((bin - top) * perBin);
    const strip = Math.min(mostStrip, Math.max(1, Math.round((bin + 1 - top) * perBin) - y0 - gap));
    const [from, to] = [Math.max(0, y0), Math.min(height, y0 + strip)];
    const drawn = Math.min(to, from + own.period);
    if (from < drawn) rasterStrip(target, { from, to: drawn, y0 }, scene, bin, own, view);
    for (let y = drawn; y < to; y++)
      target.copyWithin(y * stride, (y - own.period) * stride, (y - own.period) * stride + width);
  }
}

const flips: number[] = [];

/** Rows of the picture, the last exclusive; patterns are counted from `y0`. */
interface Rows {
  from: number;
  to: number;
  y0: number;
}

/** As many rows of one bin's strip as its patterns need before they repeat. */
function rasterStrip(
  target: Uint32Array,
  rows: Rows,
  scene: Scene,
  bin: number,
  inks: Inks,
  view: RasterView,
): void {
  const { layout, begin, color, budget } = scene;
  const { width, stride, left, perPosition, density } = view;
  // Patterns stay with the bins when they move.
  const origin = Math.round(-left * perPosition);
  const x = (position: number) => Math.max(0, Math.min(width, Math.round((position - left) * perPosition)));
  const fill = (pixel: Pixel, from: number, to: number) => {
    if (to > from)
      for (let y = rows.from; y < rows.to; y++) target.fill(pixel, y * stride + from, y * stride + to);
  };
  hatch(target, rows, stride, x(0), x(budget), inks.pad, origin);
  const [first, end] = [layout.binOffsets[bin] ?? 0, layout.binOffsets[bin + 1] ?? 0];
  const right = left + width / perPosition;
  for (let i = Math.max(first, lastAtOrBefore(begin, left, first, end)); i < end; i++) {
    const at = begin[i] ?? 0;
    if (at > right) break;
    const length = layout.length[i] ?? 0;
    const line = length * perPosition >= 3 * density ? Math.round(density) : 0;
    const to = Math.max(x(at), x(at + length) - line);
    const tint = color[i] ?? 0;
    const count = flipsOf(scene, i, flips);
    let from = x(at);
    for (let k = 0; k <= count && from < to; k++) {
      const until = k < count ? Math.min(to, x(flips[k] ?? 0)) : to;
      if (k % 2 === 0) hatch(target, rows, stride, from, until, inks.context[tint] ?? inks.pad, origin);
      else fill(inks.plain[tint] ?? 0, from, until);
      from = Math.max(from, until);
    }
    fill(inks.ground, to, x(at + length));
  }
}

function hatch(
  target: Uint32Array,
  rows: Rows,
  stride: number,
  from: number,
  to: number,
  phases: Pixel[],
  origin: number,
): void {
  const period = phases.length;
  for (let y = rows.from; y < rows.to; y++) {
    let phase = (((from - origin + y - rows.y0) % period) + period) % period;
    for (let at = y * stride + from; at < y * stride + to; at++) {
      target[at] = phases[phase] ?? 0;
      phase = phase + 1 === period ? 0 : phase + 1;
    }
  }
}

/**
 * One row of a texture: the mean colour, column by column, of bins `from … to` (exclusive) over the whole budget. Every
 * stretch counts by the share of a column that it covers, so nothing is lost however small it is.
 */
export function meanRow(
  out: Uint32Array,
  scene: Scene,
  inks: MeanInks,
  from: number,
  to: number,
  work: Float64Array,
): void {
  const width = out.length;
  work.fill(0);
  const perPosition = width / scene.budget;
  const { layout, begin, color } = scene;
  for (let bin = from; bin < to; bin++) {
    let ink = inks.pad;
    step(work, width, 0, zero, ink);
    for (let i = layout.binOffsets[bin] ?? 0; i < (layout.binOffsets[bin + 1] ?? 0); i++) {
      const tint = color[i] ?? 0;
      const count = flipsOf(scene, i, flips);
      let next = inks.context[tint] ?? ink;
      step(work, width, (begin[i] ?? 0) * perPosition, ink, next);
      for (let k = 0; k < count; k++) {
        ink = next;
        next = (k % 2 === 0 ? inks.plain[tint] : inks.context[tint]) ?? ink;
        step(work, width, (flips[k] ?? 0) * perPosition, ink, next);
      }
      step(work, width, ((begin[i] ?? 0) + (layout.length[i] ?? 0)) * perPosition, next, inks.pad);
      ink = inks.pad;
    }
  }
  let [red, green, blue] = [0, 0, 0];
  const share = 1 / Math.max(1, to - from);
  for (let x = 0; x < width; x++) {
    red += work[3 * x] ?? 0;
    green += work[3 * x + 1] ?? 0;
    blue += work[3 * x + 2] ?? 0;
    out[x] = 0xff000000 | ((blue * share) << 16) | ((green * share) << 8) | (red * share);
  }
}

export type Rgb = readonly [number, number, number];
const zero: Rgb = [0, 0, 0];

/** The mean of each pattern of `Inks`. */
export interface MeanInks {
  plain: Rgb[];
  context: Rgb[];
  pad: Rgb;
}

/** From column x on the colour changes; a column that the change divides gets its share. */
function step(work: Float64Array, width: number, x: number, from: Rgb, to: Rgb): void {
  const column = Math.floor(x);
  if (column >= width) return;
  // The array holds one column more than the picture.
  const at = 3 * column;
  const later = x - column;
  const now = 1 - later;
  const [red, green, blue] = [to[0] - from[0], to[1] - from[1], to[2] - from[2]];
  work[at] = (work[at] ?? 0) + red * now;
  work[at + 1] = (work[at + 1] ?? 0) + green * now;
  work[at + 2] = (work[at + 2] ?? 0) + blue * now;
  work[at + 3] = (work[at + 3] ?? 0) + red * later;
  work[at + 4] = (work[at + 4] ?? 0) + green * later;
  work[at + 5] = (work[at + 5] ?? 0) + blue * later;
}

/** Red, green and blue, 0 to 255, of a pattern on average. */
export function meanInks({ plain, context, pad }: Inks): MeanInks {
  return { plain: plain.map((pixel) => meanOf([pixel])), context: context.map(meanOf), pad: meanOf(pad) };
}

const flattened = new WeakMap<Inks, Inks>();

/** Each pattern as its mean. */
function flatInks(inks: Inks): Inks {
  const known = flattened.get(inks);
  if (known) return known;
  const { context, pad } = meanInks(inks);
  const flat = { ...inks, context: context.map((color) => [pixelOf(color)]), pad: [pixelOf(pad)], period: 1 };
  flattened.set(inks, flat);
  return flat;
}

export function pixelOf([red, green, blue]: Rgb): Pixel {
  return (0xff000000 | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
}

function meanOf(pixels: Pixel[]): Rgb {
  const channel = (shift: number) =>
    pixels.reduce((sum, pixel) => sum + ((pixel >>> shift) & 255), 0) / pixels.length;
  return [channel(0), channel(8), channel(16)];
}
