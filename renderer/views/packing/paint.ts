import { integer } from '../../format.ts';
import { levelOf, scaleOf, type Camera, type Level, type Scale, type Spot, type Stage } from './camera.ts';
import type { Chrome } from './chrome.ts';
import { rasterBins, type Inks } from './raster.ts';
import { placementAt, type Scene } from './scene.ts';
import { BinTexture, type Box, type Target } from './texture.ts';
import { cellOf, drawTokens, stripOfTokens, type WordsOf } from './tokenLayer.ts';

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
}

/** Draws one plan. Keeps what can be kept between frames; a new plan, theme or width asks for a new painter. */
export class BinPainter {
  readonly #scene: Scene;
  readonly #inks: Inks;
  readonly #chrome: Chrome;
  readonly #density: number;
  #texture: BinTexture | undefined;
  #textureWidth = 0;
  #image: ImageData | undefined;

  constructor(scene: Scene, inks: Inks, chrome: Chrome, density: number) {
    this.#scene = scene;
    this.#inks = inks;
    this.#chrome = chrome;
    this.#density = density;
  }

  /** Paints; true where a finer picture can be had by `work`. */
  paint(context: Target, options: PaintOptions): { level: Level; canRefine: boolean } {
    const { size, stage, camera } = options;
    const plot = plotOf(size);
    const scale = scaleOf(stage, camera.zoom);
    const level = levelOf(scale);
    context.setTransform(this.#density, 0, 0, this.#density, 0, 0);
    context.fillStyle = this.#chrome.ground;
    // Tiles cover their ground themselves.
    if (level === 'texture') context.fillRect(0, 0, size.width, size.height);
    else fillAround(context, size, plot);
    let canRefine = false;
    const texture = this.#textureOf(plot);
    if (level === 'texture') canRefine = !this.#drawTexture(context, texture, plot, camera, scale);
    else this.#drawTiles(context, plot, camera, scale, level);
    if (level === 'tokens') {
      const { left, top } = camera;
      drawTokens(context, this.#scene, plot, { ...scale, left, top }, this.#chrome, options.wordsOf);
    }
    this.#drawGutter(context, plot, camera, scale);
    this.#drawAxis(context, plot, camera, scale);
    if (options.cursor) this.#drawCursor(context, plot, camera, scale, options.cursor, level);
    if (options.withMap) canRefine = this.#drawMap(context, texture, options) || canRefine;
    return { level, canRefine };
  }

  work(untilMs: number): boolean {
    return this.#texture?.work(untilMs) ?? false;
  }

  #textureOf(plot: Box): BinTexture {
    const width = Math.round(plot.width * this.#density);
    if (this.#texture === undefined || this.#textureWidth !== width) {
      this.#texture = new BinTexture(this.#scene, this.#inks, width);
      this.#textureWidth = width;
    }
    return this.#texture;
  }

  #drawTexture(context: Target, texture: BinTexture, plot: Box, camera: Camera, scale: Scale): boolean {
    const height = Math.min(plot.height, (this.#scene.numBins - camera.top) * scale.perBin);
    if (height <= 0) return true;
    return texture.draw(context, { ...plot, height }, camera.top, scale.perBin);
  }

  #drawTiles(context: Target, plot: Box, camera: Camera, scale: Scale, level: Level): void {
    const density = this.#density;
    const [width, height] = [Math.round(plot.width * density), Math.round(plot.height * density)];
    if (this.#image?.width !== width || this.#image.height !== height)
      this.#image = new ImageData(width, height);
    rasterBins(new Uint32Array(this.#image.data.buffer), this.#scene, this.#inks, {
      ...{ width, height, density },
      ...{ left: camera.left, top: camera.top },
      perPosition: scale.perPosition * density,
      perBin: scale.perBin * density,
      mostStrip: Math.round(stripOfTokens(scale, level) * density),
    });
    context.putImageData(this.#image, Math.round(plot.x * density), Math.round(plot.y * density));
  }

  #drawGutter(context: Target, plot: Box, { top }: Camera, { perBin }: Scale): void {
    const every = niceStep(28 / perBin);
    context.font = `11px ${this.#chrome.ui}`;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillStyle = this.#chrome.textQuiet;
    const last = Math.min(this.#scene.numBins, top + plot.height / perBin);
    for (let bin = Math.max(1, Math.ceil((top + 1) / every)) * every - 1; bin < last; bin += every) {
      const y = plot.y + (bin - top + 0.5) * perBin;
      const middle = Math.max(
        plot.y + 6,
        Math.min(perBin > 24 ? plot.y + (bin - top) * perBin + 8 : y, plot.y + plot.height),
      );
      context.fillText(integer(bin + 1), plot.x - 8, middle);
    }
  }

  #drawAxis(context: Target, plot: Box, { left }: Camera, { perPosition }: Scale): void {
    const { budget } = this.#scene;
    // Budgets are mostly powers of two: so is the distance of the marks, and the last falls on the budget.
    const every = 2 ** Math.ceil(Math.log2(Math.max(1, 96 / perPosition)));
    const y = plot.y + plot.height + 6;
    context.fillStyle = this.#chrome.textQuiet;
    context.textBaseline = 'top';
    const right = Math.min(budget, left + plot.width / perPosition);
    for (let position = Math.ceil(left / every) * every; position <= right; position += every) {
      const x = plot.x + (position - left) * perPosition;
      if (position !== budget && x > plot.x + plot.width - 88 && right === budget) continue;
      const isLast = position === budget;
      context.textAlign = x < plot.x + 12 ? 'left' : isLast ? 'right' : 'center';
      context.fillText(isLast ? `${integer(budget)} tokens` : integer(position), x, y);
      context.fillRect(Math.round(x) - (isLast ? 1 : 0), plot.y + plot.height + 1, 1, 3);
    }
    if (right === budget && budget % every !== 0) {
      context.textAlign = 'right';
      context.fillText(`${integer(budget)} tokens`, plot.x + (budget - left) * perPosition, y);
    }
  }

  #drawCursor(context: Target, plot: Box, camera: Camera, scale: Scale, cursor: Spot, level: Level): void {
    const placement = placementAt(this.#scene, cursor);
    if (placement === undefined) return;
    const at = this.#scene.begin[placement] ?? 0;
    const length = this.#scene.layout.length[placement] ?? 0;
    const x = plot.x + (at - camera.left) * scale.perPosition;
    const y = plot.y + (cursor.bin - camera.top) * scale.perBin;
    const isTokens = level === 'tokens';
    const strip = Math.min(scale.perBin, stripOfTokens(scale, level));
    const tile: Box = {
      x,
      y,
      width: length * scale.perPosition,
      height: isTokens ? scale.perBin - 4 : strip,
    };
    context.save();
    context.beginPath();
    context.rect(plot.x - 2, plot.y - 2, plot.width + 4, plot.height + 4);
    context.clip();
    context.strokeStyle = this.#chrome.text;
    context.lineWidth = 1.5;
    const box = isTokens ? cellOf(plot, { ...scale, ...camera }, cursor) : tile;
    context.strokeRect(box.x - 1, box.y - 1, Math.max(3, box.width + 1), Math.max(3, box.height + 1));
    context.restore();
  }

  /** True where its picture is not there yet. */
  #drawMap(context: Target, texture: BinTexture, { size, stage, camera }: PaintOptions): boolean {
    const box = mapOf(size);
    const share = this.#scene.numBins / Math.max(1, stage.numBins);
    const perBin = box.height / Math.max(1, stage.numBins);
    context.fillStyle = this.#chrome.line;
    context.fillRect(box.x, box.y, box.width, box.height);
    const whole = { ...box, height: box.height * share };
    const isThere = texture.drawWhole(context, whole);
    const down = scaleOf(stage, camera.zoom).perBin;
    const seen = Math.min(stage.numBins, plotOf(size).height / down);
    if (seen >= stage.numBins) return !isThere;
    context.strokeStyle = this.#chrome.text;
    context.lineWidth = 1;
    const y = box.y + camera.top * perBin;
    context.strokeRect(box.x - 1.5, y - 0.5, box.width + 3, Math.max(4, seen * perBin) + 1);
    return !isThere;
  }
}

function fillAround(context: Target, { width, height }: { width: number; height: number }, plot: Box): void {
  context.fillRect(0, 0, width, plot.y + 1);
  context.fillRect(0, plot.y + plot.height - 1, width, height - plot.y - plot.height + 1);
  context.fillRect(0, 0, plot.x + 1, height);
  context.fillRect(plot.x + plot.width - 1, 0, width - plot.x - plot.width + 1, height);
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  if (least <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  return 10 * power;
}
