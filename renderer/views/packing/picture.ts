import type { Pixel } from './raster.ts';
import type { Stamp, Stamps } from './stamps.ts';

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A colour as a canvas takes it, and as a pixel. */
export interface Ink {
  css: string;
  pixel: Pixel;
}

interface TextStyle {
  font: string;
  ink: Ink;
  align?: 'left' | 'center' | 'right';
  /** What lies beyond is not drawn. */
  clip?: Box;
}

/**
 * A picture that is made pixel by pixel and given to the canvas at once: without a GPU every call to a canvas is
 * recorded, played back and copied, which costs more than the pixels. Boxes and places are in CSS pixels.
 */
export class Picture {
  readonly image: ImageData;
  /** [height × width], device pixels. */
  readonly pixels: Uint32Array;
  readonly width: number;
  readonly height: number;
  readonly #density: number;
  readonly #stamps: Stamps;

  /** `width` and `height` in device pixels, `density` of them to a CSS pixel. */
  constructor(width: number, height: number, density: number, stamps: Stamps) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.width = width;
    this.height = height;
    this.#density = density;
    this.#stamps = stamps;
  }

  /** A box, with its edges on whole device pixels. */
  rect(box: Box, pixel: Pixel, clip?: Box): void {
    const { left, top, right, bottom } = this.#edges(box, clip);
    if (right <= left) return;
    for (let y = top; y < bottom; y++) this.pixels.fill(pixel, y * this.width + left, y * this.width + right);
  }

  /** The line around a box, one device pixel wide or as many as `line` CSS pixels make. */
  frame(box: Box, pixel: Pixel, line: number, clip?: Box): void {
    const { x, y, width, height } = box;
    this.rect({ x, y, width, height: line }, pixel, clip);
    this.rect({ x, y: y + height - line, width, height: line }, pixel, clip);
    this.rect({ x, y, width: line, height }, pixel, clip);
    this.rect({ x: x + width - line, y, width: line, height }, pixel, clip);
  }

  /** A line of text about the middle line `y`, where it is ready. */
  text(text: string, x: number, y: number, { font, ink, align = 'left', clip }: TextStyle): void {
    const stamp = this.#stamps.of(text, font, ink.css);
    if (stamp === undefined) return;
    const before = align === 'left' ? 0 : align === 'right' ? stamp.advance : stamp.advance / 2;
    const [left, top] = [Math.round((x - before) * this.#density), Math.round(y * this.#density)];
    this.#press(stamp, left + stamp.left, top + stamp.top, ink.pixel, clip);
  }

  /** What a text takes; undefined where it is not ready. */
  widthOf(text: string, { font, ink }: TextStyle): number | undefined {
    return this.#stamps.of(text, font, ink.css)?.advance;
  }

  #press(stamp: Stamp, x: number, y: number, ink: Pixel, clip: Box | undefined): void {
    const edges = this.#edges(undefined, clip);
    const [left, right] = [Math.max(edges.left, x), Math.min(edges.right, x + stamp.width)];
    const [top, bottom] = [Math.max(edges.top, y), Math.min(edges.bottom, y + stamp.height)];
    const { coverage } = stamp;
    const [redBlue, green] = [ink & 0xff00ff, ink & 0xff00];
    for (let row = top; row < bottom; row++) {
      let from = (row - y) * stamp.width + left - x;
      for (let at = row * this.width + left; at < row * this.width + right; at++, from++) {
        const covered = coverage[from] ?? 0;
        if (covered === 0) continue;
        // 0 to 256, so that a shift divides.
        const over = covered + (covered >> 7);
        const ground = this.pixels[at] ?? 0;
        const mixedRedBlue = Math.imul(ground & 0xff00ff, 256 - over) + Math.imul(redBlue, over);
        const mixedGreen = Math.imul(ground & 0xff00, 256 - over) + Math.imul(green, over);
        this.pixels[at] = 0xff000000 | ((mixedRedBlue >>> 8) & 0xff00ff) | ((mixedGreen >>> 8) & 0xff00);
      }
    }
  }

  #edges(box: Box | undefined, clip: Box | undefined) {
    let [left, top, right, bottom] = [0, 0, this.width, this.height];
    for (const one of [box, clip]) {
      if (one === undefined) continue;
      left = Math.max(left, Math.round(one.x * this.#density));
      top = Math.max(top, Math.round(one.y * this.#density));
      right = Math.min(right, Math.round((one.x + one.width) * this.#density));
      bottom = Math.min(bottom, Math.round((one.y + one.height) * this.#density));
    }
    return { left, top, right, bottom };
  }
}
