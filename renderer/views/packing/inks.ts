import { token } from '../../charts/tokens.ts';
import { numColors, type ColorBy } from './scene.ts';
import { pixelOf, type Inks, type Pixel, type Rgb } from './raster.ts';

/** Names of the design tokens that tiles are coloured with: the ramp of lengths, or files and, last, all others. */
export const colorTokens: Record<ColorBy, string[]> = {
  length: Array.from({ length: numColors }, (_, i) => `seq-${String(i)}`),
  source: ['c1', 'c2', 'c3', 'c4', 'c7', 'c8'],
};

const contextPeriod = 4;
const padPeriod = 8;

/** How far the ground shines through a context pixel, along the diagonal: soft edges keep it from flickering. */
const contextVeil = [0.62, 0.34, 0.12, 0.34];
const padVeil = [1, 0.45, 0, 0, 0, 0, 0, 0.45];

/** The patterns in the theme that is shown; at twice the density they are twice as wide. */
export function inksOf(colorBy: ColorBy, density: number): Inks {
  const size = Math.max(1, Math.round(density));
  const ground = rgb(token('bg-1'));
  const [pad, padInk] = [rgb(token('pad')), rgb(token('pad-ink'))];
  const colors = colorTokens[colorBy].map((name) => rgb(token(name)));
  const period = padPeriod * size;
  const phases = (veil: number[], length: number, from: Rgb, to: Rgb) =>
    Array.from({ length: period }, (_, i) => mix(from, to, veil[Math.floor(i / size) % length] ?? 0));
  return {
    plain: colors.map((color) => pixelOf(color)),
    context: colors.map((color) => phases(contextVeil, contextPeriod, color, ground)),
    pad: phases(padVeil, padPeriod, pad, padInk),
    ground: pixelOf(ground),
    period,
  };
}

/** `#rrggbb` */
function rgb(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function mix(from: Rgb, to: Rgb, share: number): Pixel {
  const between = (channel: 0 | 1 | 2) => from[channel] + (to[channel] - from[channel]) * share;
  return pixelOf([between(0), between(1), between(2)]);
}
