import { meanInks, meanRow, type Inks, type MeanInks } from './raster.ts';
import type { Scene } from './scene.ts';

const rowsPerChunk = 256;
/** Chunks kept; one is `rowsPerChunk` rows of the picture's width. */
const mostChunks = 64;

interface Chunk {
  canvas: OffscreenCanvas;
  /** Rows that are drawn yet, of so many. */
  done: number;
  rows: number;
  usedAt: number;
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
  readonly #row: Uint32Array<ArrayBuffer>;
  #clock = 0;
  #wanted: { level: number; index: number }[] = [];

  /** `width`: columns of every level, in device pixels. */
  constructor(scene: Scene, inks: Inks, width: number) {
    this.#scene = scene;
    this.#inks = meanInks(inks);
    this.#width = width;
    this.#work = new Float64Array(3 * (width + 2));
    this.#row = new Uint32Array(width);
  }

  get coarsest(): number {
    return Math.max(0, Math.ceil(Math.log2(this.#scene.numBins / rowsPerChunk)));
  }

  /**
   * Draws bins from `top` on into a box of the context, `perBin` pixels each. True where all of it was there; where not,
   * `work` makes what is missing.
   */
  draw(context: Target, box: Box, top: number, perBin: number): boolean {
    const level = Math.max(0, Math.min(this.coarsest, Math.floor(Math.log2(1 / perBin))));
    this.#clock++;
    this.#wanted = [];
    const bottom = Math.min(this.#scene.numBins, top + box.height / perBin);
    const perChunk = rowsPerChunk * 2 ** level;
    context.save();
    context.beginPath();
    context.rect(box.x, box.y, box.width, box.height);
    context.clip();
    context.imageSmoothingEnabled = perBin * 2 ** level < 1;
    let isWhole = true;
    for (let index = Math.floor(top / perChunk); index * perChunk < bottom; index++) {
      const from = Math.max(top, index * perChunk);
      const to = Math.min(bottom, (index + 1) * perChunk);
      const found = this.#finest(level, index);
      if (found?.level !== level) {
        isWhole = false;
        this.#wanted.push({ level, index });
      }
      if (found) this.#paint(context, box, found, { from, to, top, perBin });
    }
    context.restore();
    return isWhole;
  }

  /** All bins at their coarsest, filling a box; false where they are not there yet. */
  drawWhole(context: Target, box: Box): boolean {
    const found = this.#finest(this.coarsest, 0);
    if (found === undefined) return false;
    context.imageSmoothingEnabled = true;
    const to = this.#scene.numBins;
    this.#paint(context, box, found, { from: 0, to, top: 0, perBin: box.height / Math.max(1, to) });
    return true;
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

  #finest(level: number, index: number): { level: number; index: number; chunk: Chunk } | undefined {
    for (let up = level; up <= this.coarsest; up++) {
      const at = index >> (up - level);
      const chunk = this.#chunks.get(`${String(up)}/${String(at)}`);
      if (chunk === undefined || chunk.done < chunk.rows) continue;
      chunk.usedAt = this.#clock;
      return { level: up, index: at, chunk };
    }
    return undefined;
  }

  #paint(
    context: Target,
    box: Box,
    { level, index, chunk }: { level: number; index: number; chunk: Chunk },
    { from, to, top, perBin }: { from: number; to: number; top: number; perBin: number },
  ): void {
    const binsPerRow = 2 ** level;
    const firstBin = index * rowsPerChunk * binsPerRow;
    context.drawImage(
      chunk.canvas,
      0,
      (from - firstBin) / binsPerRow,
      this.#width,
      (to - from) / binsPerRow,
      box.x,
      box.y + (from - top) * perBin,
      box.width,
      (to - from) * perBin,
    );
  }

  #open(level: number, index: number): Chunk | undefined {
    const key = `${String(level)}/${String(index)}`;
    const known = this.#chunks.get(key);
    if (known) return known.done < known.rows ? known : undefined;
    const left = this.#scene.numBins - index * rowsPerChunk * 2 ** level;
    const rows = Math.min(rowsPerChunk, Math.ceil(left / 2 ** level));
    if (rows <= 0) return undefined;
    const chunk = { canvas: new OffscreenCanvas(this.#width, rows), done: 0, rows, usedAt: this.#clock };
    this.#chunks.set(key, chunk);
    if (this.#chunks.size > mostChunks) this.#dropOldest();
    return chunk;
  }

  #fill(chunk: Chunk, level: number, index: number, untilMs: number): boolean {
    const context = chunk.canvas.getContext('2d');
    if (context === null) return false;
    const { numBins } = this.#scene;
    const first = chunk.done;
    const image = new ImageData(this.#width, chunk.rows - first);
    const pixels = new Uint32Array(image.data.buffer);
    while (chunk.done < chunk.rows) {
      const bin = (index * rowsPerChunk + chunk.done) * 2 ** level;
      meanRow(this.#row, this.#scene, this.#inks, bin, Math.min(numBins, bin + 2 ** level), this.#work);
      pixels.set(this.#row, (chunk.done - first) * this.#width);
      chunk.done++;
      if (performance.now() > untilMs) break;
    }
    context.putImageData(image, 0, first, 0, 0, this.#width, chunk.done - first);
    return chunk.done === chunk.rows;
  }

  #dropOldest(): void {
    const whole = `${String(this.coarsest)}/0`;
    const old = [...this.#chunks].filter(([key]) => key !== whole).sort((a, b) => a[1].usedAt - b[1].usedAt);
    for (const [key] of old.slice(0, mostChunks / 4)) this.#chunks.delete(key);
  }
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}
export type Target = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
