import { token } from '../../charts/tokens.ts';
import { integer } from '../../format.ts';
import { levelOf, type Camera, type Scale, type Stage } from './camera.ts';
import { chromeOf } from './chrome.ts';
import type { ShownPlan } from './exportPlan.ts';
import { colorTokens } from './inks.ts';
import { plotOf } from './paint.ts';
import { gapBetween } from './raster.ts';
import { flipsOf, type ColorBy, type Scene } from './scene.ts';
import { tokensAsSvg, tokenStyles } from './svgTokens.ts';
import { stripOfTokens, type WordsOf } from './tokenLayer.ts';

/** Shapes in one file: about 5 MB, which browsers and drawing programs still open. */
const mostShapes = 150_000;

interface Size {
  width: number;
  height: number;
  headHeight: number;
}

interface Part {
  markup: string;
  /** Bins drawn, the last exclusive. */
  from: number;
  to: number;
}

/**
 * Plans side by side as vectors: one path a colour, hatching as patterns. A whole plan is as high as its bins need;
 * where it has more shapes than a file should, its first bins are drawn, and the caption says how many of how many.
 */
export function svgOfPlans(
  plans: ShownPlan[],
  size: Size,
  stage: Stage,
  camera: Camera,
  scale: Scale,
  colorBy: ColorBy,
  isWhole: boolean,
  wordsOf: WordsOf,
): string {
  const plot = plotOf(size);
  const bottom = isWhole ? Infinity : camera.top + plot.height / scale.perBin;
  const parts = plans.map(({ scene }) =>
    drawPlan(scene, plot.width, camera, scale, bottom, Math.floor(mostShapes / plans.length)),
  );
  const level = levelOf(scale);
  const chrome = chromeOf();
  const words = ({ scene }: ShownPlan) =>
    level === 'tokens'
      ? tokensAsSvg(scene, { ...camera, ...scale, width: plot.width, bottom }, chrome, wordsOf)
      : '';
  const rows = isWhole ? Math.max(...parts.map(({ to }) => to)) * scale.perBin : plot.height;
  const height = size.headHeight + plot.y + rows + 28;
  const body = plans.map((plan, column) => {
    const { title, caption, scene } = plan;
    const { markup, from, to } = parts[column] ?? { markup: '', from: 0, to: 0 };
    const isCut = isWhole && to < scene.numBins;
    const seen =
      isCut || !isWhole ? `bins ${integer(from + 1)} to ${integer(to)} of ${integer(scene.numBins)}` : '';
    const why = isCut ? `, as many as ${integer(mostShapes)} shapes hold` : '';
    // A picture within the picture: what is too long for it ends at its edge.
    return `<svg x="${String(column * size.width)}" width="${String(size.width)}" height="${n(height)}">
<text x="16" y="20" class="t">${escape(title)} <tspan class="c">${escape(seen + why)}</tspan></text><text x="16" y="36" class="c">${escape(caption)}</text>
<g transform="translate(${String(plot.x)} ${String(plot.y + size.headHeight)})">${markup}${words(plan)}${axes(scene, camera, scale, plot.width, rows, from, to)}</g></svg>`;
  });
  const width = size.width * plans.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(width)} ${n(height)}" width="${String(width)}" height="${n(height)}">
<style>${styles(colorBy)}${level === 'tokens' ? tokenStyles(chrome) : ''}</style><defs>${patterns(colorBy)}</defs><rect width="100%" height="100%" fill="${token('bg-1')}"/>
${body.join('\n')}
</svg>
`;
}

function drawPlan(
  scene: Scene,
  width: number,
  { left, top }: Camera,
  { perPosition, perBin }: Scale,
  bottom: number,
  mostShapes: number,
): Part {
  const paths = new Map<string, string[]>();
  let shapes = 0;
  const x = (position: number) => Math.max(0, Math.min(width, (position - left) * perPosition));
  const most = stripOfTokens({ perPosition, perBin }, levelOf({ perPosition, perBin }));
  const strip = Math.min(18, most, Math.max(0.5, perBin - gapBetween(perBin, 1)));
  const add = (kind: string, from: number, to: number, y: number) => {
    if (x(to) - x(from) < 0.05) return;
    shapes++;
    const path = `M${n(x(from))} ${n(y)}h${n(x(to) - x(from))}v${n(strip)}h${n(x(from) - x(to))}z`;
    const list = paths.get(kind);
    if (list) list.push(path);
    else paths.set(kind, [path]);
  };
  const first = Math.max(0, Math.floor(top));
  let bin = first;
  for (; bin < scene.numBins && bin < bottom && shapes < mostShapes; bin++)
    drawBin(scene, bin, (bin - top) * perBin, perPosition, add);
  const markup = [...paths].map(([kind, list]) => `<path class="${kind}" d="${list.join('')}"/>`);
  return { markup: markup.join('\n'), from: first, to: bin };
}

function drawBin(
  scene: Scene,
  bin: number,
  y: number,
  perPosition: number,
  add: (kind: string, from: number, to: number, y: number) => void,
): void {
  const { layout, begin, color, budget } = scene;
  const flips: number[] = [];
  let filled = 0;
  for (let i = layout.binOffsets[bin] ?? 0; i < (layout.binOffsets[bin + 1] ?? 0); i++) {
    const at = begin[i] ?? 0;
    if (at > filled) add('p', filled, at, y);
    const end = at + (layout.length[i] ?? 0);
    // A hairline between tiles that have room for one.
    const last = (end - at) * perPosition >= 3 ? end - 0.75 / perPosition : end;
    const count = flipsOf(scene, i, flips);
    let from = at;
    for (let k = 0; k <= count; k++) {
      const until = k < count ? Math.min(last, flips[k] ?? last) : last;
      if (until > from) add(`${k % 2 === 0 ? 'h' : 's'}${String(color[i] ?? 0)}`, from, until, y);
      from = Math.max(from, until);
    }
    filled = end;
  }
  if (filled < budget) add('p', filled, budget, y);
}

function axes(
  { budget }: Scene,
  { left, top }: Camera,
  { perPosition, perBin }: Scale,
  width: number,
  rows: number,
  from: number,
  to: number,
): string {
  const every = 2 ** Math.ceil(Math.log2(Math.max(1, 128 / perPosition)));
  const marks: string[] = [];
  for (let p = Math.ceil(left / every) * every; p <= Math.min(budget, left + width / perPosition); p += every)
    marks.push(`<text x="${n((p - left) * perPosition)}" y="${n(rows + 16)}" class="m">${integer(p)}</text>`);
  const step = Math.max(1, Math.ceil(40 / perBin / 10) * 10);
  for (let bin = Math.ceil(from / step) * step; bin < to; bin += step)
    marks.push(`<text x="-8" y="${n((bin - top + 0.5) * perBin + 4)}" class="b">${integer(bin + 1)}</text>`);
  return marks.join('');
}

function styles(colorBy: ColorBy): string {
  const font = `font-family:Inter,system-ui,sans-serif;`;
  const kinds = colorTokens[colorBy].map(
    (name, i) => `.s${String(i)}{fill:${token(name)}}.h${String(i)}{fill:url(#h${String(i)})}`,
  );
  const words = `.t{${font}font-size:13px;font-weight:600;fill:${token('tx-1')}}.c,.m,.b{${font}font-size:11px;font-weight:400;fill:${token('tx-3')}}.m{text-anchor:middle}.b{text-anchor:end}`;
  return `${words}${kinds.join('')}.p{fill:url(#p)}`;
}

function patterns(colorBy: ColorBy): string {
  const hatch = (id: string, size: number, fill: string, ink: string, line: number) =>
    `<pattern id="${id}" width="${String(size)}" height="${String(size)}" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="${String(size)}" height="${String(size)}" fill="${fill}"/><rect width="${String(line)}" height="${String(size)}" fill="${ink}"/></pattern>`;
  const ground = token('bg-1');
  const tiles = colorTokens[colorBy].map((name, i) => hatch(`h${String(i)}`, 2.8, token(name), ground, 1.1));
  return `${tiles.join('')}${hatch('p', 5.6, token('pad'), token('pad-ink'), 0.8)}`;
}

const n = (value: number) => String(Math.round(value * 100) / 100);
const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
