import type { PackingLayout } from '../../../main/contract/packing.ts';
import { token } from '../../charts/tokens.ts';

export interface BinPicture {
  layout: PackingLayout;
  budget: number;
  /** Supervised tokens and all tokens of each example. */
  supervised: Int32Array;
  lengths: Int32Array;
}

const columns = 4;
const gap = 8;
const thickest = 20;

/** Every bin as a strip: tiles are examples, coloured by length, their share of context muted, padding hatched. */
export function drawBins(canvas: HTMLCanvasElement, picture: BinPicture): void {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = window.devicePixelRatio;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.scale(scale, scale);
  const { layout, budget, supervised, lengths } = picture;
  const numBins = layout.binOffsets.length - 1;
  const perColumn = Math.max(1, Math.ceil(numBins / columns));
  const stripWidth = (width - gap * (columns - 1)) / columns;
  const pitch = Math.min(thickest, height / perColumn);
  const thick = Math.max(1, pitch - (pitch > 3 ? 2 : 0.5));
  const stepOf = rampOver(lengths);
  const ramp = [0, 1, 2, 3, 4, 5].map((step) => token(`seq-${String(step)}`));
  const [muted, empty] = [`${token('bg-1')}66`, token('pad')];
  for (let bin = 0; bin < numBins; bin++) {
    const left = Math.floor(bin / perColumn) * (stripWidth + gap);
    const top = (bin % perColumn) * pitch;
    context.fillStyle = empty;
    context.fillRect(left, top, stripWidth, thick);
    let used = 0;
    for (let i = layout.binOffsets[bin] ?? 0; i < (layout.binOffsets[bin + 1] ?? 0); i++) {
      const example = layout.example[i] ?? 0;
      const length = layout.length[i] ?? 0;
      const x = left + (used / budget) * stripWidth;
      const tile = Math.max(0.5, (length / budget) * stripWidth - (pitch > 3 ? 1 : 0.25));
      const learned = (supervised[example] ?? 0) / Math.max(1, lengths[example] ?? 1);
      context.fillStyle = ramp[stepOf(lengths[example] ?? length)] ?? '';
      context.fillRect(x, top, tile, thick);
      context.fillStyle = muted;
      context.fillRect(x, top, tile * (1 - learned), thick);
      used += layout.positions?.[i] ?? length;
    }
  }
}

/** Six steps, logarithmic, over the lengths that are there. */
function rampOver(lengths: Int32Array): (length: number) => number {
  const [low, high] = [Math.log2(Math.max(1, smallest(lengths))), Math.log2(Math.max(2, largest(lengths)))];
  return (length) =>
    Math.max(0, Math.min(5, Math.floor((6 * (Math.log2(length) - low)) / Math.max(0.01, high - low))));
}

export const smallest = (values: Int32Array) =>
  values.reduce((least, value) => Math.min(least, value), Infinity);
export const largest = (values: Int32Array) => values.reduce((most, value) => Math.max(most, value), 0);
