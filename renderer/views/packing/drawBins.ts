import type { PackingLayout } from '../../../main/contract/packing.ts';

/** What the canvas shows: bins one below the other, in as many columns as keep a row visible. */
export interface BinGrid {
  columns: number;
  rowHeight: number;
  columnWidth: number;
  firstBin: number;
  numBins: number;
}

export interface Palette {
  /** Length ramp, short to long. */
  ramp: string[];
  gap: string;
  pad: string;
  padInk: string;
}

const columnGap = 16;
const leastRow = 3;

/**
 * Lays `numBins` bins out over a canvas. Zoomed in, a window of them fills one column; from far, all of them stand in as
 * many columns as rows of at least 3 px need.
 */
export function gridFor(width: number, height: number, firstBin: number, numBins: number): BinGrid {
  const rowsThatFit = Math.max(1, Math.floor(height / leastRow));
  const columns = Math.max(1, Math.ceil(numBins / rowsThatFit));
  const rows = Math.max(1, Math.ceil(numBins / columns));
  return {
    columns,
    rowHeight: Math.min(24, height / rows),
    columnWidth: (width - columnGap * (columns - 1)) / columns,
    firstBin,
    numBins,
  };
}

function placeOf(grid: BinGrid, offset: number): { x: number; y: number } {
  const rows = Math.ceil(grid.numBins / grid.columns);
  return {
    x: Math.floor(offset / rows) * (grid.columnWidth + columnGap),
    y: (offset % rows) * grid.rowHeight,
  };
}

/** Colour of a length on a log scale from 64 to 8,192 tokens. */
export function rampIndex(length: number, numColors: number): number {
  const position = (Math.log2(Math.max(64, Math.min(8192, length))) - 6) / 7;
  return Math.min(numColors - 1, Math.floor(position * numColors));
}

/** Draws each visible bin: its examples as tiles, what is computed for nothing as hatching, the free rest as hatching too. */
export function drawBins(
  context: CanvasRenderingContext2D,
  layout: PackingLayout,
  budget: number,
  grid: BinGrid,
  palette: Palette,
): void {
  const hatch = hatchPattern(context, palette);
  const scale = grid.columnWidth / budget;
  const gap = grid.rowHeight >= 6 ? 2 : grid.rowHeight >= 4 ? 1 : 0;
  const tile = Math.max(1, grid.rowHeight - gap);
  const last = Math.min(layout.binOffsets.length - 1, grid.firstBin + grid.numBins);
  for (let bin = grid.firstBin; bin < last; bin += 1) {
    const { x, y } = placeOf(grid, bin - grid.firstBin);
    context.fillStyle = hatch;
    context.fillRect(x, y, grid.columnWidth, tile);
    let position = 0;
    const end = layout.binOffsets[bin + 1] ?? 0;
    for (let i = layout.binOffsets[bin] ?? 0; i < end; i += 1) {
      const length = layout.length[i] ?? 0;
      const computed = layout.positions?.[i] ?? length;
      const left = x + position * scale;
      const width = length * scale;
      context.fillStyle = palette.ramp[rampIndex(length, palette.ramp.length)] ?? palette.gap;
      context.fillRect(left, y, Math.max(0.5, width - (width > 3 ? 1 : 0)), tile);
      position += computed;
    }
  }
}

function hatchPattern(context: CanvasRenderingContext2D, palette: Palette): CanvasPattern | string {
  const cell = new OffscreenCanvas(6, 6);
  const ink = cell.getContext('2d');
  if (ink === null) return palette.pad;
  ink.fillStyle = palette.pad;
  ink.fillRect(0, 0, 6, 6);
  ink.strokeStyle = palette.padInk;
  ink.lineWidth = 0.8;
  ink.beginPath();
  for (const offset of [-6, 0, 6]) {
    ink.moveTo(offset, 6);
    ink.lineTo(offset + 6, 0);
  }
  ink.stroke();
  return context.createPattern(cell, 'repeat') ?? palette.pad;
}

export interface Hit {
  bin: number;
  /** Index of the placement in the layout. */
  placement: number;
  example: number;
  length: number;
  /** First position in the bin. */
  at: number;
  box: { x: number; y: number; width: number; height: number };
}

/** The example under a point of the canvas; undefined over padding and outside. */
export function hitTest(
  layout: PackingLayout,
  budget: number,
  grid: BinGrid,
  x: number,
  y: number,
): Hit | undefined {
  const rows = Math.ceil(grid.numBins / grid.columns);
  const column = Math.floor(x / (grid.columnWidth + columnGap));
  const row = Math.floor(y / grid.rowHeight);
  const inside = x - column * (grid.columnWidth + columnGap);
  if (row >= rows || inside > grid.columnWidth) return undefined;
  const bin = grid.firstBin + column * rows + row;
  if (bin >= Math.min(layout.binOffsets.length - 1, grid.firstBin + grid.numBins)) return undefined;
  const scale = grid.columnWidth / budget;
  let at = 0;
  const end = layout.binOffsets[bin + 1] ?? 0;
  for (let i = layout.binOffsets[bin] ?? 0; i < end; i += 1) {
    const length = layout.length[i] ?? 0;
    if (inside >= at * scale && inside < (at + length) * scale) {
      const place = placeOf(grid, bin - grid.firstBin);
      return {
        bin,
        placement: i,
        example: layout.example[i] ?? 0,
        length,
        at,
        box: { x: place.x + at * scale, y: place.y, width: length * scale, height: grid.rowHeight },
      };
    }
    at += layout.positions?.[i] ?? length;
  }
  return undefined;
}
