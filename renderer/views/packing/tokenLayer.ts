import { counted } from '../../../main/contract/counted.ts';
import type { ExampleTokens } from '../../../main/contract/datasets.ts';
import { integer } from '../../format.ts';
import { glyphsOf, tokenBytes } from '../datasets/tokenTiles.ts';
import { tileBin, type Level, type Scale, type Spot } from './camera.ts';
import type { ChromeInks } from './chrome.ts';
import type { Box, Ink, Picture } from './picture.ts';
import type { Scene } from './scene.ts';
import { isLearned, segmentsInSight, titleOf, type Segment } from './segments.ts';

/** Tokens of an example, where they are there; asking for them sends for them. */
export type WordsOf = (example: number) => ExampleTokens | undefined;

/** A bin's lines at token level, from its top: strip, words about the example, tokens, position ids. */
export const lines = { strip: 6, label: 9, cell: 23, cellHeight: 20, ids: 46 };
export const leastWords = 26;
const charWidth = 7.2;
/** No words fit into less. */
const leastLabel = 40;

interface View extends Scale {
  left: number;
  top: number;
}

/** How high a bin's strip is drawn: all of the bin, or at token level a thin one with the words below. */
export function stripOfTokens({ perBin }: Scale, level: Level): number {
  return level === 'tokens' ? lines.strip : Math.max(1, Math.min(perBin, tileBin));
}

/** Box of one token. */
export function cellOf(plot: Box, { left, top, perPosition, perBin }: View, { bin, position }: Spot): Box {
  return {
    x: plot.x + (position - left) * perPosition,
    y: plot.y + (bin - top) * perBin + lines.cell,
    width: perPosition - 1,
    height: lines.cellHeight,
  };
}

/** Every token in sight: its text, whether it is learned, its position id; where examples begin; padding by name. */
export function drawTokens(
  picture: Picture,
  scene: Scene,
  plot: Box,
  view: View,
  inks: ChromeInks,
  wordsOf: WordsOf,
): void {
  const right = view.left + plot.width / view.perPosition;
  const last = Math.min(scene.numBins, Math.ceil(view.top + plot.height / view.perBin));
  const pen: Pen = { picture, plot, view, inks };
  for (let bin = Math.max(0, Math.floor(view.top)); bin < last; bin++) {
    const y = plot.y + (bin - view.top) * view.perBin;
    let filled = 0;
    for (const segment of segmentsInSight(scene, bin, view.left, right)) {
      drawSegment(pen, segment, y, wordsOf(segment.example));
      filled = segment.at + segment.positions;
      drawEmpty(pen, 'of padding', segment.at + segment.length, filled, y);
    }
    // What follows the last segment, where that is in sight.
    if (filled >= filledOf(scene, bin)) drawEmpty(pen, 'free', filled, scene.budget, y);
  }
}

/** What a bin is drawn with and where. */
interface Pen {
  picture: Picture;
  plot: Box;
  view: View;
  inks: ChromeInks;
}

function filledOf({ layout, begin }: Scene, bin: number): number {
  const last = (layout.binOffsets[bin + 1] ?? 0) - 1;
  return (begin[last] ?? 0) + (layout.positions?.[last] ?? layout.length[last] ?? 0);
}

function drawSegment(pen: Pen, segment: Segment, y: number, words: ExampleTokens | undefined): void {
  const { picture, plot, view, inks } = pen;
  const x = plot.x + (segment.at - view.left) * view.perPosition;
  const line = { x: Math.round(x) - 1, y, width: 1, height: lines.cell + lines.cellHeight + 12 };
  picture.rect(line, inks.textMuted.pixel, plot);
  const room = {
    x: Math.max(x, plot.x) + 4,
    right: Math.min(plot.x + plot.width, x + segment.length * view.perPosition) - 4,
    y: y + lines.label + 6,
  };
  if (room.right - room.x >= leastLabel) {
    const { name, facts } = titleOf(segment);
    drawLabel(pen, name, facts, room);
  }
  const hasRoom = view.perPosition >= leastWords;
  for (let t = segment.from; t < segment.to; t++) {
    const learned = isLearned(words, segment, t);
    const cell = {
      x: x + t * view.perPosition,
      y: y + lines.cell,
      width: view.perPosition - 1,
      height: lines.cellHeight,
    };
    picture.rect(cell, (learned ? inks.supervised : inks.context).pixel, plot);
    if (learned)
      picture.rect({ ...cell, y: cell.y + cell.height - 2, height: 2 }, inks.supervisedLine.pixel, plot);
    if (!hasRoom) continue;
    const ink = learned ? inks.text : inks.textMuted;
    if (words) drawWord(pen, textOf(words, segment.start + t), cell, ink);
    picture.text(numeral(t), x + (t + 0.5) * view.perPosition, y + lines.ids + 6, {
      ...{ font: `10px ${inks.ui}`, ink: inks.textQuiet, align: 'center', clip: plot },
    });
  }
}

const numerals: string[] = [];
/** Formatted once: a picture has hundreds. */
const numeral = (value: number) => (numerals[value] ??= integer(value));

const texts = new WeakMap<ExampleTokens, string[]>();

/** A token on one line, spaces and line breaks as marks. */
export function textOf(words: ExampleTokens, t: number): string {
  let known = texts.get(words);
  if (known === undefined) texts.set(words, (known = []));
  return (known[t] ??= glyphsOf(tokenBytes(words, t))
    .map((glyph) => glyph.text.replace('\n', ''))
    .join(''));
}

/** Signs that the font may join into one, as `<|`. */
const joined = /[!-/:-@[-`{-~]{2}/;

/** A token's text as far as a cell of this width holds it. */
export function shortened(text: string, perPosition: number): string {
  const most = Math.max(1, Math.floor((perPosition - 5) / charWidth));
  const signs = Array.from(text);
  return signs.length > most ? `${signs.slice(0, most - 1).join('')}…` : text;
}

function drawWord({ picture, plot, view, inks }: Pen, text: string, cell: Box, ink: Ink): void {
  const shown = shortened(text, view.perPosition);
  const [middle, y] = [cell.x + cell.width / 2, cell.y + cell.height / 2 - 0.5];
  const right = Math.min(plot.x + plot.width, cell.x + cell.width);
  const left = Math.max(plot.x, cell.x);
  const clip = { x: left, y: plot.y, width: right - left, height: plot.height };
  const style = { font: `12px ${inks.mono}`, ink, align: 'center', clip } as const;
  if (!joined.test(shown)) picture.text(shown, middle, y, style);
  else
    Array.from(shown).forEach((sign, i, signs) => {
      picture.text(sign, middle + (i - (signs.length - 1) / 2) * charWidth, y, style);
    });
}

function drawEmpty(pen: Pen, what: string, from: number, to: number, y: number): void {
  const { plot, view } = pen;
  const x = plot.x + (from - view.left) * view.perPosition;
  const room = {
    x: Math.max(x, plot.x) + 6,
    right: Math.min(plot.x + plot.width, x + (to - from) * view.perPosition) - 4,
    y: y + lines.cell + lines.cellHeight / 2,
  };
  if (room.right - room.x >= leastLabel)
    drawLabel(pen, '', `${counted(to - from, 'position')} ${what}`, room);
}

/** Words in a stretch: the bold part alone where both do not fit, none where that does not. */
function drawLabel(
  { picture, plot, inks }: Pen,
  bold: string,
  rest: string,
  { x, right, y }: { x: number; right: number; y: number },
): void {
  const strong = { font: `600 11px ${inks.ui}`, ink: inks.textMuted, clip: plot };
  const quiet = { font: `11px ${inks.ui}`, ink: inks.textQuiet, clip: plot };
  let after = x;
  if (bold !== '') {
    const wide = picture.widthOf(bold, strong);
    if (wide === undefined || x + wide > right) return;
    picture.text(bold, x, y, strong);
    after += wide + 5;
  }
  const wide = picture.widthOf(rest, quiet);
  if (wide !== undefined && after + wide <= right) picture.text(rest, after, y, quiet);
}
