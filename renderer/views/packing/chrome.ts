import { token } from '../../charts/tokens.ts';
import type { Ink } from './picture.ts';

/** Colours and fonts around the bins, as the theme that is shown has them. */
export interface Chrome {
  ground: string;
  line: string;
  text: string;
  textMuted: string;
  textQuiet: string;
  supervised: string;
  supervisedLine: string;
  context: string;
  ui: string;
  mono: string;
}

export function chromeOf(): Chrome {
  return {
    ground: token('bg-1'),
    line: token('line'),
    text: token('tx-1'),
    textMuted: token('tx-2'),
    textQuiet: token('tx-3'),
    supervised: token('sup-bg'),
    supervisedLine: token('sup-line'),
    context: token('bg-2'),
    ui: token('font-ui'),
    mono: token('font-mono'),
  };
}

/** The same with each colour as a pixel too, as it looks on the ground. */
export type ChromeInks = Record<Exclude<keyof Chrome, 'ui' | 'mono'>, Ink> & Pick<Chrome, 'ui' | 'mono'>;

export function inksOfChrome(chrome: Chrome): ChromeInks {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  if (context === null) throw new Error('this window has no canvas');
  const over = (css: string, under: string[] = []): Ink => {
    for (const color of [chrome.ground, ...under, css]) {
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
    }
    const [pixel = 0] = new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer);
    return { css, pixel };
  };
  return {
    ground: over(chrome.ground),
    line: over(chrome.line),
    text: over(chrome.text),
    textMuted: over(chrome.textMuted),
    textQuiet: over(chrome.textQuiet),
    supervised: over(chrome.supervised),
    supervisedLine: over(chrome.supervisedLine, [chrome.supervised]),
    context: over(chrome.context),
    ui: chrome.ui,
    mono: chrome.mono,
  };
}
