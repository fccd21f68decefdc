import type { ExampleTokens } from '../../../main/contract/datasets.ts';
import { integer } from '../../format.ts';
import type { Camera, Scale } from './camera.ts';
import type { Chrome } from './chrome.ts';
import type { Scene } from './scene.ts';
import { isLearned, segmentsInSight, titleOf, type Segment } from './segments.ts';
import { leastWords, lines, shortened, textOf, type WordsOf } from './tokenLayer.ts';

interface View extends Scale, Pick<Camera, 'left' | 'top'> {
  width: number;
  /** The last bin in sight, exclusive. */
  bottom: number;
}

/** What stands below the strips at token level, as vectors and words that can be searched and edited. */
export function tokensAsSvg(scene: Scene, view: View, chrome: Chrome, wordsOf: WordsOf): string {
  const right = view.left + view.width / view.perPosition;
  const parts: string[] = [];
  for (let bin = Math.max(0, Math.floor(view.top)); bin < Math.min(scene.numBins, view.bottom); bin++) {
    const y = (bin - view.top) * view.perBin;
    for (const segment of segmentsInSight(scene, bin, view.left, right))
      parts.push(markupOf(segment, y, view, chrome, wordsOf(segment.example)));
  }
  return parts.join('\n');
}

function markupOf(
  segment: Segment,
  y: number,
  view: View,
  chrome: Chrome,
  words: ExampleTokens | undefined,
): string {
  const { perPosition } = view;
  const { at, start, from, to } = segment;
  const x = (position: number) => (position - view.left) * perPosition;
  const { name, facts } = titleOf(segment);
  const title = `<tspan class="tb">${name}</tspan> ${facts}`;
  const cells = [
    `<rect x="${n(x(at) - 1)}" y="${n(y)}" width="1.5" height="${n(lines.cell + lines.cellHeight + 12)}" fill="${chrome.textMuted}"/>`,
    `<text x="${n(Math.max(0, x(at)) + 4)}" y="${n(y + lines.label + 10)}" class="tl">${title}</text>`,
  ];
  for (let t = from; t < to; t++) {
    const learned = isLearned(words, segment, t);
    const middle = n(x(at + t) + perPosition / 2);
    const fill = learned ? chrome.supervised : chrome.context;
    cells.push(
      `<rect x="${n(x(at + t))}" y="${n(y + lines.cell)}" width="${n(perPosition - 1)}" height="${n(lines.cellHeight)}" fill="${fill}"/>`,
    );
    if (perPosition < leastWords || words === undefined) continue;
    const shown = shortened(textOf(words, start + t), perPosition);
    cells.push(
      `<text x="${middle}" y="${n(y + lines.cell + lines.cellHeight / 2 + 4)}" class="tw${learned ? ' tk' : ''}">${escape(shown)}</text>`,
      `<text x="${middle}" y="${n(y + lines.ids + 10)}" class="ti">${integer(t)}</text>`,
    );
  }
  return cells.join('');
}

export function tokenStyles(chrome: Chrome): string {
  return (
    `.tl{font:11px ${chrome.ui};fill:${chrome.textQuiet}}.tb{font-weight:600;fill:${chrome.textMuted}}` +
    `.tw{font:12px ${chrome.mono};fill:${chrome.textMuted};text-anchor:middle;white-space:pre}.tk{fill:${chrome.text}}` +
    `.ti{font:10px ${chrome.ui};fill:${chrome.textQuiet};text-anchor:middle}`
  );
}

const n = (value: number) => String(Math.round(value * 100) / 100);
/** Also characters that no XML may hold, which tokens may. */
const escape = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(
      /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      '�',
    );
