import { integer } from '../../format.ts';
import type { Camera, Scale } from './camera.ts';
import type { Chrome } from './chrome.ts';
import { lastAtOrBefore, type Scene } from './scene.ts';
import { charWidth, leastWords, lines, textOf, type WordsOf } from './tokenLayer.ts';

interface View extends Scale, Pick<Camera, 'left' | 'top'> {
  width: number;
  /** The last bin in sight, exclusive. */
  bottom: number;
}

/** What stands below the strips at token level, as vectors and words that can be searched and edited. */
export function tokensAsSvg(scene: Scene, view: View, chrome: Chrome, wordsOf: WordsOf): string {
  const { layout, begin } = scene;
  const right = view.left + view.width / view.perPosition;
  const parts: string[] = [];
  for (let bin = Math.max(0, Math.floor(view.top)); bin < Math.min(scene.numBins, view.bottom); bin++) {
    const [first, end] = [layout.binOffsets[bin] ?? 0, layout.binOffsets[bin + 1] ?? 0];
    for (let i = Math.max(first, lastAtOrBefore(begin, view.left, first, end)); i < end; i++) {
      if ((begin[i] ?? 0) > right) break;
      parts.push(segment(scene, i, (bin - view.top) * view.perBin, view, chrome, wordsOf));
    }
  }
  return parts.join('\n');
}

function segment(
  scene: Scene,
  placement: number,
  y: number,
  view: View,
  chrome: Chrome,
  wordsOf: WordsOf,
): string {
  const { layout, begin } = scene;
  const [at, length] = [begin[placement] ?? 0, layout.length[placement] ?? 0];
  const [example, start] = [layout.example[placement] ?? 0, layout.start[placement] ?? 0];
  const words = wordsOf(example);
  const { perPosition } = view;
  const x = (position: number) => (position - view.left) * perPosition;
  const from = Math.max(0, Math.floor(view.left - at));
  const to = Math.min(length, Math.ceil(view.left + view.width / perPosition - at));
  const title = `<tspan class="tb">Example ${integer(example + 1)}</tspan> ${integer(length)} tokens, cu_seqlens ${integer(at)} to ${integer(at + length)}`;
  const cells = [
    `<rect x="${n(x(at) - 1)}" y="${n(y)}" width="1.5" height="${n(lines.cell + lines.cellHeight + 12)}" fill="${chrome.textMuted}"/>`,
    `<text x="${n(Math.max(0, x(at)) + 4)}" y="${n(y + lines.label + 10)}" class="tl">${title}</text>`,
  ];
  for (let t = from; t < to; t++) {
    // The first token of a segment is predicted by nothing.
    const isLearned = t > 0 && words?.supervised[start + t] === 1;
    const middle = n(x(at + t) + perPosition / 2);
    const fill = isLearned ? chrome.supervised : chrome.context;
    cells.push(
      `<rect x="${n(x(at + t))}" y="${n(y + lines.cell)}" width="${n(perPosition - 1)}" height="${n(lines.cellHeight)}" fill="${fill}"/>`,
    );
    if (perPosition < leastWords || words === undefined) continue;
    const shown = shortened(textOf(words, start + t), perPosition);
    cells.push(
      `<text x="${middle}" y="${n(y + lines.cell + lines.cellHeight / 2 + 4)}" class="tw${isLearned ? ' tk' : ''}">${escape(shown)}</text>`,
      `<text x="${middle}" y="${n(y + lines.ids + 10)}" class="ti">${integer(t)}</text>`,
    );
  }
  return cells.join('');
}

function shortened(text: string, perPosition: number): string {
  const most = Math.max(1, Math.floor((perPosition - 5) / charWidth));
  const signs = Array.from(text);
  return signs.length > most ? `${signs.slice(0, most - 1).join('')}…` : text;
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
