import { meanInks, meanRow, type Inks, type MeanInks } from './raster.ts';
import type { Scene } from './scene.ts';

const rowsPerChunk = 256;
/** Chunks kept, or three times as many as one picture needs; one is `rowsPerChunk` rows of the picture's width. */
const leastChunks = 24;

interface Chunk {
  /** [rowsPerChunk × width] */
  pixels: Uint32Array;
  /** Rows that are drawn yet, of so many. */
  done: number;
  rows: number;
  usedAt: number;
}

interface Found {
  level: number;
  index: number;
  chunk: Chunk;
}

/**
 * All bins of a plan as pictures of falling fineness, as maps are kept: level k has one row for 2^k bins, cut into
 * chunks that are made when they come into sight and dropped when they have long been out of it. While one is being
 * made, a coarser one stands in for it.
 */
export class BinTexture {
  readonly #scene: Scene;
  readonly #inks: MeanInks;
  readonly #width: number;
  readonly #chunks = new Map<string, Chunk>();
  readonly #work: Float64Array;
  #mostChunks = leastChunks;
  #clock = 0;
  #wanted: { level: number; index: number }[] = [];

  /** `width`: columns of every level, in device pixels. */
  constructor(scene: Scene, inks: Inks, width: number) {
    this.#scene = scene;
    this.#inks = meanInks(inks);
    this.#width = width;
    this.#work = new Float64Array(3 * (width + 2));
  }

  get coarsest(): number {
    return Math.max(0, Math.ceil(Math.log2(this.#scene.numBins / rowsPerChunk)));
  }

  /**
   * Draws bins from `top` on into the first `rows` rows of a picture whose rows are `stride` pixels apart, `perBin` device
   * pixels each. True where all of it was there; where not, `work` makes what is missing.
   */
  draw(target: Uint32Array, stride: number, rows: number, top: number, perBin: number): boolean {
    const level = Math.max(0, Math.min(this.coarsest, Math.floor(Math.log2(1 / perBin))));
    this.#clock++;
    this.#wanted = [];
    const bottom = Math.min(this.#scene.numBins, top + rows / perBin);
    const perChunk = rowsPerChunk * 2 ** level;
    this.#mostChunks = Math.max(leastChunks, 3 * Math.ceil((bottom - top) / perChunk + 1));
    let isWhole = true;
    for (let index = Math.floor(top / perChunk); index * perChunk < bottom; index++) {
      const from = Math.round((Math.max(top, index * perChunk) - top) * perBin);
      const to = Math.min(rows, Math.round((Math.min(bottom, (index + 1) * perChunk) - top) * perBin));
      const found = this.#finest(level, index);
      if (found?.level !== level) {
        isWhole = false;
        this.#wanted.push({ level, index });
      }
      if (found) this.#copyRows(target, stride, { from, to }, found, top, perBin);
    }
    return isWhole;
  }

  /** All bins at their coarsest as a picture [height × width] of its own; undefined where they are not there yet. */
  whole(width: number, height: number): Uint32Array | undefined {
    const found = this.#finest(this.coarsest, 0);
    if (found === undefined) return undefined;
    const rows = new Uint32Array(this.#width * height);
    this.#copyRows(rows, this.#width, { from: 0, to: height }, found, 0, height / this.#scene.numBins);
    const small = new Uint32Array(width * height);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const from = y * this.#width + Math.floor((x * this.#width) / width);
        const to = y * this.#width + Math.max(1, Math.floor(((x + 1) * this.#width) / width));
        small[y * width + x] = meanPixel(rows, from, to);
      }
    }
    return small;
  }

  /** Makes what was missing, until a moment of `performance.now()`. True where more is to do. */
  work(untilMs: number): boolean {
    for (const { level, index } of [{ level: this.coarsest, index: 0 }, ...this.#wanted]) {
      const chunk = this.#open(level, index);
      if (chunk === undefined) continue;
      if (!this.#fill(chunk, level, index, untilMs)) return true;
    }
    return false;
  }

  #finest(level: number, index: number): Found | undefined {
    for (let up = level; up <= this.coarsest; up++) {
      const at = index >> (up - level);
      const chunk = this.#chunks.get(`${String(up)}/${String(at)}`);
      if (chunk === undefined || chunk.done < chunk.rows) continue;
      chunk.usedAt = this.#clock;
      return { level: up, index: at, chunk };
    }
    return undefined;
  }

  /** Rows `from … to` of a picture that begins with bin `top`, from a chunk whose rows are nearer together or apart. */
  #copyRows(
    target: Uint32Array,
    stride: number,
    { from, to }: { from: number; to: number },
    { level, index, chunk }: Found,
    top: number,
    perBin: number,
  ): void {
    const binsPerRow = 2 ** level;
    const width = this.#width;
    const last = chunk.rows - 1;
    // Larger than they are, rows keep their edges: they are bins.
    const isLarger = perBin * binsPerRow >= 1;
    for (let y = from; y < to; y++) {
      const row = (top + (y + 0.5) / perBin) / binsPerRow - index * rowsPerChunk - (isLarger ? 0 : 0.5);
      const upper = Math.max(0, Math.min(last, Math.floor(row)));
      const share = isLarger ? 0 : Math.round(256 * (row - upper));
      const rows = chunk.pixels.subarray(upper * width, (upper + 1) * width);
      if (share <= 0 || upper === last) target.set(rows, y * stride);
      else mixRows(target, y * stride, chunk.pixels, upper * width, width, share);
    }
  }

  #open(level: number, index: number): Chunk | undefined {
    const key = `${String(level)}/${String(index)}`;
    const known = this.#chunks.get(key);
    if (known) return known.done < known.rows ? known : undefined;
    const left = this.#scene.numBins - index * rowsPerChunk * 2 ** level;
    const rows = Math.min(rowsPerChunk, Math.ceil(left / 2 ** level));
    if (rows <= 0) return undefined;
    const old = this.#chunks.size >= this.#mostChunks ? this.#takeOldest() : undefined;
    const pixels = old ?? new Uint32Array(this.#width * rowsPerChunk);
    const chunk = { pixels, done: 0, rows, usedAt: this.#clock };
    this.#chunks.set(key, chunk);
    return chunk;
  }

  #fill(chunk: Chunk, level: number, index: number, untilMs: number): boolean {
    const { numBins } = this.#scene;
    while (chunk.done < chunk.rows) {
      const bin = (index * rowsPerChunk + chunk.done) * 2 ** level;
      const row = chunk.pixels.subarray(chunk.done * this.#width, (chunk.done + 1) * this.#width);
      meanRow(row, this.#scene, this.#inks, bin, Math.min(numBins, bin + 2 ** level), this.#work);
      chunk.done++;
      if (performance.now() > untilMs) break;
    }
    return chunk.done === chunk.rows;
  }

  /** The pixels of what has been out of sight for longest, to be drawn over: new ones cost a collection. */
  #takeOldest(): Uint32Array | undefined {
    const whole = `${String(this.coarsest)}/0`;
    let oldest: string | undefined;
    for (const [key, { usedAt }] of this.#chunks) {
      if (key !== whole && usedAt < (this.#chunks.get(oldest ?? key)?.usedAt ?? Infinity)) oldest = key;
      oldest ??= key === whole ? undefined : key;
    }
    const pixels = this.#chunks.get(oldest ?? '')?.pixels;
    if (oldest !== undefined) this.#chunks.delete(oldest);
    return pixels;
  }
}

/** Two rows of pixels, `share` of 256 of the lower one. */
function mixRows(
  target: Uint32Array,
  at: number,
  rows: Uint32Array,
  upper: number,
  width: number,
  share: number,
): void {
  const rest = 256 - share;
  for (let x = 0; x < width; x++) {
    const [a, b] = [rows[upper + x] ?? 0, rows[upper + width + x] ?? 0];
    const redBlue = Math.imul(a & 0xff00ff, rest) + Math.imul(b & 0xff00ff, share);
    const green = Math.imul(a & 0xff00, rest) + Math.imul(b & 0xff00, share);
    target[at + x] = 0xff000000 | ((redBlue >>> 8) & 0xff00ff) | ((green >>> 8) & 0xff00);
  }
}

function meanPixel(pixels: Uint32Array, from: number, to: number): number {
  let [red, green, blue] = [0, 0, 0];
  for (let at = from; at < to; at++) {
    const pixel = pixels[at] ?? 0;
    red += pixel & 255;
    green += (pixel >>> 8) & 255;
    blue += (pixel >>> 16) & 255;
  }
  const count = Math.max(1, to - from);
  return 0xff000000 | ((blue / count) << 16) | ((green / count) << 8) | (red / count);
}
