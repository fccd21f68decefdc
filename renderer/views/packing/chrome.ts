import { token } from '../../charts/tokens.ts';

/** Colours and fonts around the bins, as the theme that is shown has them. */
export interface Chrome {
  ground: string;
  line: string;
  lineStrong: string;
  text: string;
  textMuted: string;
  textQuiet: string;
  accent: string;
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
    lineStrong: token('line-2'),
    text: token('tx-1'),
    textMuted: token('tx-2'),
    textQuiet: token('tx-3'),
    accent: token('accent'),
    supervised: token('sup-bg'),
    supervisedLine: token('sup-line'),
    context: token('bg-2'),
    ui: token('font-ui'),
    mono: token('font-mono'),
  };
}
