import type { ExampleTokens } from '../../../main/contract/datasets.ts';
import { integer } from '../../format.ts';
import { glyphsOf, tokenBytes } from '../datasets/tokenTiles.ts';
import { tileBin, type Level, type Scale, type Spot } from './camera.ts';
import type { Chrome } from './chrome.ts';
import { lastAtOrBefore, type Scene } from './scene.ts';
import type { Box, Target } from './texture.ts';

/** Tokens of an example, where they are there; asking for them sends for them. */
export type WordsOf = (example: number) => ExampleTokens | undefined;

/** A bin's lines at token level, from its top: strip, words about the example, tokens, position ids. */
export const lines = { strip: 6, label: 9, cell: 23, cellHeight: 20, ids: 46 };
export const leastWords = 26;
export const charWidth = 7.2;

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
  context: Target,
  scene: Scene,
  plot: Box,
  view: View,
  chrome: Chrome,
  wordsOf: WordsOf,
): void {
  context.save();
  context.beginPath();
  context.rect(plot.x, plot.y, plot.width, plot.height);
  context.clip();
  context.textBaseline = 'middle';
  const last = Math.min(scene.numBins, Math.ceil(view.top + plot.height / view.perBin));
  for (let bin = Math.max(0, Math.floor(view.top)); bin < last; bin++)
    drawBin(context, scene, bin, plot, view, chrome, wordsOf);
  context.restore();
}

function drawBin(
  context: Target,
  scene: Scene,
  bin: number,
  plot: Box,
  view: View,
  chrome: Chrome,
  wordsOf: WordsOf,
): void {
  const { layout, begin, budget } = scene;
  const [first, end] = [layout.binOffsets[bin] ?? 0, layout.binOffsets[bin + 1] ?? 0];
  const right = view.left + plot.width / view.perPosition;
  const y = plot.y + (bin - view.top) * view.perBin;
  for (let i = Math.max(first, lastAtOrBefore(begin, view.left, first, end)); i < end; i++) {
    const at = begin[i] ?? 0;
    if (at > right) break;
    const length = layout.length[i] ?? 0;
    drawSegment(context, scene, i, y, plot, view, chrome, wordsOf);
    const padded = at + (layout.positions?.[i] ?? length);
    drawEmpty(context, 'positions of padding', at + length, padded, y, plot, view, chrome);
    if (i + 1 === end) drawEmpty(context, 'positions free', padded, budget, y, plot, view, chrome);
  }
}

function drawSegment(
  context: Target,
  scene: Scene,
  placement: number,
  y: number,
  plot: Box,
  view: View,
  chrome: Chrome,
  wordsOf: WordsOf,
): void {
  const { layout, begin } = scene;
  const [at, length] = [begin[placement] ?? 0, layout.length[placement] ?? 0];
  const example = layout.example[placement] ?? 0;
  const start = layout.start[placement] ?? 0;
  const x = plot.x + (at - view.left) * view.perPosition;
  context.fillStyle = chrome.textMuted;
  context.fillRect(Math.round(x) - 1, y, 1.5, lines.cell + lines.cellHeight + 12);
  label(
    context,
    `Example ${integer(example + 1)}`,
    ` ${integer(length)} tokens, cu_seqlens ${integer(at)} to ${integer(at + length)}`,
    {
      x: Math.max(x, plot.x) + 4,
      right: Math.min(plot.x + plot.width, x + length * view.perPosition) - 4,
      y: y + lines.label + 6,
      chrome,
    },
  );
  const words = wordsOf(example);
  const from = Math.max(0, Math.floor(view.left - at));
  const to = Math.min(length, Math.ceil(view.left + plot.width / view.perPosition - at));
  // The first token of a segment is predicted by nothing.
  const isLearned = (t: number) => t > 0 && words?.supervised[start + t] === 1;
  const cellAt = (t: number) => ({
    x: x + t * view.perPosition,
    y: y + lines.cell,
    width: view.perPosition - 1,
    height: lines.cellHeight,
  });
  for (let t = from; t < to; t++) {
    const cell = cellAt(t);
    context.fillStyle = isLearned(t) ? chrome.supervised : chrome.context;
    context.fillRect(cell.x, cell.y, cell.width, cell.height);
    if (!isLearned(t)) continue;
    context.fillStyle = chrome.supervisedLine;
    context.fillRect(cell.x, cell.y + cell.height - 2, cell.width, 2);
  }
  if (view.perPosition < leastWords) return;
  // A font is dear to set: once for all words, once for all numbers.
  context.textAlign = 'center';
  context.font = `12px ${chrome.mono}`;
  for (let t = from; words && t < to; t++)
    drawWord(context, words, start + t, cellAt(t), isLearned(t) ? chrome.text : chrome.textMuted);
  context.font = `10px ${chrome.ui}`;
  context.fillStyle = chrome.textQuiet;
  for (let t = from; t < to; t++)
    context.fillText(integer(t), x + (t + 0.5) * view.perPosition, y + lines.ids + 6);
}

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

function drawWord(context: Target, words: ExampleTokens, t: number, cell: Box, ink: string): void {
  const text = textOf(words, t);
  const most = Math.max(1, Math.floor((cell.width - 4) / charWidth));
  context.fillStyle = ink;
  const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  const [middle, y] = [cell.x + cell.width / 2, cell.y + cell.height / 2 - 0.5];
  if (!joined.test(shown)) context.fillText(shown, middle, y, cell.width - 2);
  else
    Array.from(shown).forEach((sign, i, signs) => {
      context.fillText(sign, middle + (i - (signs.length - 1) / 2) * charWidth, y);
    });
}

function drawEmpty(
  context: Target,
  what: string,
  from: number,
  to: number,
  y: number,
  plot: Box,
  view: View,
  chrome: Chrome,
): void {
  if (to <= from) return;
  const x = plot.x + (from - view.left) * view.perPosition;
  label(context, '', `${integer(to - from)} ${what}`, {
    x: Math.max(x, plot.x) + 6,
    right: Math.min(plot.x + plot.width, x + (to - from) * view.perPosition) - 4,
    y: y + lines.cell + lines.cellHeight / 2,
    chrome,
  });
}

/** Words in a stretch: the bold part alone where both do not fit, none where that does not. */
function label(
  context: Target,
  bold: string,
  rest: string,
  { x, right, y, chrome }: { x: number; right: number; y: number; chrome: Chrome },
): void {
  context.textAlign = 'left';
  context.font = `600 11px ${chrome.ui}`;
  const wide = context.measureText(bold).width;
  if (x + wide > right) return;
  context.fillStyle = chrome.textMuted;
  context.fillText(bold, x, y);
  context.font = `11px ${chrome.ui}`;
  if (x + wide + context.measureText(rest).width > right) return;
  context.fillStyle = chrome.textQuiet;
  context.fillText(rest, x + wide + (bold === '' ? 0 : 2), y);
}
