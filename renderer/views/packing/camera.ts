import type { ShallowRef } from 'vue';

/** Where a picture of bins stands: how near it is, in octaves from the view of all bins, and what its corner shows. */
export interface Camera {
  zoom: number;
  /** Position in the bins at the left edge. */
  left: number;
  /** Bin at the upper edge, with a fraction. */
  top: number;
}

/** A camera that several pictures share. */
export interface Viewpoint {
  camera: ShallowRef<Camera>;
}

/** The area that bins are drawn on, in pixels, and how many there are: of the longest plan beside one another. */
export interface Stage {
  width: number;
  height: number;
  budget: number;
  numBins: number;
}

/** Pixels. */
export interface Scale {
  perPosition: number;
  perBin: number;
}

export type Level = 'texture' | 'tiles' | 'tokens';

/** Height of a bin at which zooming goes on to widen its positions. */
export const tileBin = 18;
const tokenBin = 64;
const tokenWidth = 72;
/** From this width on a position is drawn as a token. */
const leastToken = 12;
/** Bins lower than this are drawn as a texture. */
export const leastTile = 4;
/** Octaves over which a bin grows from a tile's height to a token's. */
const growth = 3;

/**
 * Zooming is one line from all bins to tokens: first the bins grow until their tiles can be told apart, then the
 * positions widen until tokens can be read, and the bins with them to hold a token's lines.
 */
function legs({ width, height, budget, numBins }: Stage): {
  bins: number;
  positions: number;
  fitBin: number;
} {
  const fitBin = Math.min(tileBin, height / Math.max(1, numBins));
  return {
    fitBin,
    bins: Math.log2(tileBin / fitBin),
    positions: Math.max(growth, Math.log2((tokenWidth * budget) / Math.max(1, width))),
  };
}

export function maxZoom(stage: Stage): number {
  const { bins, positions } = legs(stage);
  return bins + positions;
}

export function scaleOf(stage: Stage, zoom: number): Scale {
  const { bins, positions, fitBin } = legs(stage);
  const near = Math.max(0, zoom - bins);
  const grown = Math.min(1, Math.max(0, (near - (positions - growth)) / (growth - 1)));
  return {
    perPosition: (stage.width / stage.budget) * 2 ** near,
    perBin: zoom < bins ? fitBin * 2 ** zoom : tileBin + (tokenBin - tileBin) * grown,
  };
}

export function levelOf({ perPosition, perBin }: Scale): Level {
  if (perBin < leastTile) return 'texture';
  return perPosition >= leastToken && perBin > (tileBin + tokenBin) / 2 ? 'tokens' : 'tiles';
}

/** The zoom at which a level is best seen. */
export function zoomFor(stage: Stage, level: Level): number {
  if (level === 'texture') return 0;
  const { bins } = legs(stage);
  return level === 'tiles' ? Math.max(0, bins - 0.5) : maxZoom(stage);
}

export function clampCamera(stage: Stage, camera: Camera): Camera {
  const zoom = Math.min(maxZoom(stage), Math.max(0, camera.zoom));
  const { perPosition, perBin } = scaleOf(stage, zoom);
  const within = (value: number, most: number) => Math.min(Math.max(0, most), Math.max(0, value));
  return {
    zoom,
    left: within(camera.left, stage.budget - stage.width / perPosition),
    top: within(camera.top, stage.numBins - stage.height / perBin),
  };
}

/** Zooms by some octaves; what lies under the pixel (x, y) stays there, as far as the edges allow. */
export function zoomAt(stage: Stage, camera: Camera, octaves: number, x: number, y: number): Camera {
  const zoom = Math.min(maxZoom(stage), Math.max(0, camera.zoom + octaves));
  const [before, after] = [scaleOf(stage, camera.zoom), scaleOf(stage, zoom)];
  return clampCamera(stage, {
    zoom,
    left: camera.left + x / before.perPosition - x / after.perPosition,
    top: camera.top + y / before.perBin - y / after.perBin,
  });
}

export function panBy(stage: Stage, camera: Camera, x: number, y: number): Camera {
  const { perPosition, perBin } = scaleOf(stage, camera.zoom);
  return clampCamera(stage, { ...camera, left: camera.left + x / perPosition, top: camera.top + y / perBin });
}

/** Moves as little as brings a place into sight, with its bin whole. */
export function reveal(stage: Stage, camera: Camera, { bin, position }: Spot): Camera {
  const { perPosition, perBin } = scaleOf(stage, camera.zoom);
  const [across, down] = [stage.width / perPosition, stage.height / perBin];
  const margin = Math.min(across / 4, 2);
  return clampCamera(stage, {
    zoom: camera.zoom,
    left: Math.max(position + margin - across, Math.min(camera.left, position - margin)),
    top: Math.max(bin + 1 - down, Math.min(camera.top, bin)),
  });
}

/** A position of a bin. */
export interface Spot {
  bin: number;
  position: number;
}

/** The place under a pixel, whether or not a bin is there. */
export function spotAt(stage: Stage, camera: Camera, x: number, y: number): Spot {
  const { perPosition, perBin } = scaleOf(stage, camera.zoom);
  return { bin: Math.floor(camera.top + y / perBin), position: Math.floor(camera.left + x / perPosition) };
}

/** Bins in sight, the last exclusive. */
export function binsInSight(stage: Stage, camera: Camera): { from: number; to: number } {
  const { perBin } = scaleOf(stage, camera.zoom);
  return {
    from: Math.floor(camera.top),
    to: Math.min(stage.numBins, Math.ceil(camera.top + stage.height / perBin)),
  };
}
