import { integer } from '../../format.ts';
import { levelOf, scaleOf, type Camera, type Level, type Scale, type Spot, type Stage } from './camera.ts';
import { inksOfChrome, type Chrome, type ChromeInks } from './chrome.ts';
import { Picture, type Box } from './picture.ts';
import { rasterBins, type Inks } from './raster.ts';
import { placementAt, type Scene } from './scene.ts';
import { stampsOf } from './stamps.ts';
import { BinTexture } from './texture.ts';
import { cellOf, drawTokens, stripOfTokens, type WordsOf } from './tokenLayer.ts';

type Target = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

const inset = { left: 52, top: 4, right: 22, bottom: 24 };
const mapWidth = 8;

/** The part of a canvas that bins are drawn on; CSS pixels, as everything here but the raster itself. */
export function plotOf({ width, height }: { width: number; height: number }): Box {
  return {
    x: inset.left,
    y: inset.top,
    width: Math.max(1, width - inset.left - inset.right),
    height: Math.max(1, height - inset.top - inset.bottom),
  };
}

/** The strip at the right that shows all bins and what part of them is in sight. */
export function mapOf(size: { width: number; height: number }): Box {
  const plot = plotOf(size);
  return { x: size.width - mapWidth - 4, y: plot.y, width: mapWidth, height: plot.height };
}

export interface PaintOptions {
  size: { width: number; height: number };
  stage: Stage;
  camera: Camera;
  cursor: Spot | undefined;
  wordsOf: WordsOf;
  /** Without the strip at the right: in a file it has no use. */
  withMap: boolean;
  /** So many texts that were never drawn are drawn in this picture; the others wait for the next. */
  newTexts: number;
}

/** Draws one plan. Keeps what can be kept between frames; a new plan, theme or width asks for a new painter. */
export class BinPainter {
  readonly #scene: Scene;
  readonly #inks: Inks;
  readonly #chrome: ChromeInks;
  readonly #density: number;
  #texture: BinTexture | undefined;
  #textureWidth = 0;
  #picture: Picture | undefined;
  #map: { pixels: Uint32Array; width: number; height: number } | undefined;

  constructor(scene: Scene, inks: Inks, chrome: Chrome, density: number) {
    this.#scene = scene;
    this.#inks = inks;
    this.#chrome = inksOfChrome(chrome);
    this.#density = density;
  }

  /** Paints; true where a finer picture can be had by `work`. */
  paint(context: Target, options: PaintOptions): { level: Level; canRefine: boolean } {
    const { size, stage, camera } = options;
    const plot = plotOf(size);
    const scale = scaleOf(stage, camera.zoom);
    const level = levelOf(scale);
    const stamps = stampsOf(this.#density);
    stamps.allowance = options.newTexts;
    const picture = this.#pictureOf(size);
    picture.pixels.fill(this.#chrome.ground.pixel);
    let canRefine = false;
    const texture = this.#textureOf(plot);
    if (level === 'texture') canRefine = !this.#drawTexture(picture, texture, plot, camera, scale);
    else this.#drawTiles(picture, plot, camera, scale, level);
    if (level === 'tokens') {
      const { left, top } = camera;
      drawTokens(picture, this.#scene, plot, { ...scale, left, top }, this.#chrome, options.wordsOf);
    }
    this.#drawGutter(picture, plot, camera, scale);
    this.#drawAxis(picture, plot, camera, scale);
    if (options.cursor) this.#drawCursor(picture, plot, camera, scale, options.cursor, level);
    if (options.withMap) canRefine = this.#drawMap(picture, texture, options) || canRefine;
    context.putImageData(picture.image, 0, 0);
    return { level, canRefine: stamps.takeLate() || canRefine };
  }

  work(untilMs: number): boolean {
    return this.#texture?.work(untilMs) ?? false;
  }

  #pictureOf(size: { width: number; height: number }): Picture {
    const density = this.#density;
    const [width, height] = [Math.round(size.width * density), Math.round(size.height * density)];
    if (this.#picture?.width !== width || this.#picture.height !== height)
      this.#picture = new Picture(width, height, density, stampsOf(density));
    return this.#picture;
  }

  #textureOf(plot: Box): BinTexture {
    const { width } = this.#inPixels(plot);
    if (this.#texture === undefined || this.#textureWidth !== width) {
      this.#texture = new BinTexture(this.#scene, this.#inks, width);
      this.#textureWidth = width;
    }
    return this.#texture;
  }

  #inPixels({ x, y, width, height }: Box): Box {
    const [left, top] = [Math.round(x * this.#density), Math.round(y * this.#density)];
    return {
      ...{ x: left, y: top },
      width: Math.round((x + width) * this.#density) - left,
      height: Math.round((y + height) * this.#density) - top,
    };
  }

  /** True where all of it was there. */
  #drawTexture(picture: Picture, texture: BinTexture, plot: Box, camera: Camera, scale: Scale): boolean {
    const { x, y, height } = this.#inPixels(plot);
    const perBin = scale.perBin * this.#density;
    const rows = Math.min(height, Math.round((this.#scene.numBins - camera.top) * perBin));
    if (rows <= 0) return true;
    const target = picture.pixels.subarray(y * picture.width + x);
    return texture.draw(target, picture.width, rows, camera.top, perBin);
  }

  #drawTiles(picture: Picture, plot: Box, camera: Camera, scale: Scale, level: Level): void {
    const density = this.#density;
    const { x, y, width, height } = this.#inPixels(plot);
    rasterBins(picture.pixels.subarray(y * picture.width + x), this.#scene, this.#inks, {
      ...{ width, height, stride: picture.width, density },
      ...{ left: camera.left, top: camera.top },
      perPosition: scale.perPosition * density,
      perBin: scale.perBin * density,
      mostStrip: Math.round(stripOfTokens(scale, level) * density),
    });
  }

  #drawGutter(picture: Picture, plot: Box, { top }: Camera, { perBin }: Scale): void {
    const every = niceStep(28 / perBin);
    const style = { font: `11px ${this.#chrome.ui}`, ink: this.#chrome.textQuiet, align: 'right' } as const;
    const last = Math.min(this.#scene.numBins, top + plot.height / perBin);
    for (let bin = Math.max(1, Math.ceil((top + 1) / every)) * every - 1; bin < last; bin += every) {
      const y = plot.y + (bin - top + 0.5) * perBin;
      const middle = Math.max(
        plot.y + 6,
        Math.min(perBin > 24 ? plot.y + (bin - top) * perBin + 8 : y, plot.y + plot.height),
      );
      picture.text(integer(bin + 1), plot.x - 8, middle, style);
    }
  }

  #drawAxis(picture: Picture, plot: Box, { left }: Camera, { perPosition }: Scale): void {
    const { budget } = this.#scene;
    // Budgets are mostly powers of two: so is the distance of the marks, and the last falls on the budget.
    const every = 2 ** Math.ceil(Math.log2(Math.max(1, 96 / perPosition)));
    const y = plot.y + plot.height + 12;
    const style = { font: `11px ${this.#chrome.ui}`, ink: this.#chrome.textQuiet };
    const right = Math.min(budget, left + plot.width / perPosition);
    for (let position = Math.ceil(left / every) * every; position <= right; position += every) {
      const x = plot.x + (position - left) * perPosition;
      if (position !== budget && x > plot.x + plot.width - 88 && right === budget) continue;
      const isLast = position === budget;
      const align = x < plot.x + 12 ? 'left' : isLast ? 'right' : 'center';
      picture.text(isLast ? `${integer(budget)} tokens` : integer(position), x, y, { ...style, align });
      const mark = { x: Math.round(x) - (isLast ? 1 : 0), y: plot.y + plot.height + 1, width: 1, height: 3 };
      picture.rect(mark, style.ink.pixel);
    }
    if (right === budget && budget % every !== 0) {
      const x = plot.x + (budget - left) * perPosition;
      picture.text(`${integer(budget)} tokens`, x, y, { ...style, align: 'right' });
    }
  }

  #drawCursor(picture: Picture, plot: Box, camera: Camera, scale: Scale, cursor: Spot, level: Level): void {
    const placement = placementAt(this.#scene, cursor);
    if (placement === undefined) return;
    const at = this.#scene.begin[placement] ?? 0;
    const length = this.#scene.layout.length[placement] ?? 0;
    const tile: Box = {
      x: plot.x + (at - camera.left) * scale.perPosition,
      y: plot.y + (cursor.bin - camera.top) * scale.perBin,
      width: length * scale.perPosition,
      height: Math.min(scale.perBin, stripOfTokens(scale, level)),
    };
    const box = level === 'tokens' ? cellOf(plot, { ...scale, ...camera }, cursor) : tile;
    const around = {
      ...{ x: box.x - 2, y: box.y - 2 },
      ...{ width: Math.max(5, box.width + 3), height: Math.max(5, box.height + 3) },
    };
    const clip = { x: plot.x - 2, y: plot.y - 2, width: plot.width + 4, height: plot.height + 4 };
    picture.frame(around, this.#chrome.text.pixel, 1.5, clip);
  }

  /** True where its picture is not there yet. */
  #drawMap(picture: Picture, texture: BinTexture, { size, stage, camera }: PaintOptions): boolean {
    const box = mapOf(size);
    const { line, text } = this.#chrome;
    picture.rect(box, line.pixel);
    const share = this.#scene.numBins / Math.max(1, stage.numBins);
    const { x, y, width, height } = this.#inPixels({ ...box, height: box.height * share });
    if (this.#map?.width !== width || this.#map.height !== height) {
      const pixels = texture.whole(width, height);
      this.#map = pixels && { pixels, width, height };
    }
    for (let row = 0; this.#map && row < height; row++)
      picture.pixels.set(
        this.#map.pixels.subarray(row * width, (row + 1) * width),
        (y + row) * picture.width + x,
      );
    const down = scaleOf(stage, camera.zoom).perBin;
    const seen = Math.min(stage.numBins, plotOf(size).height / down);
    if (seen < stage.numBins) {
      const top = box.y + (camera.top * box.height) / Math.max(1, stage.numBins);
      const high = Math.max(4, (seen * box.height) / stage.numBins);
      picture.frame({ x: box.x - 2, y: top - 1, width: box.width + 4, height: high + 2 }, text.pixel, 1);
    }
    return this.#map === undefined;
  }
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  if (least <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  return 10 * power;
}
