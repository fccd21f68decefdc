import { views } from '../../main/contract/host.ts';

/** Where keys count, what they are (one entry a key of a chord, `or` between alternatives) and what they do. */
export interface ShortcutGroup {
  title: string;
  keys: [keys: string, does: string][];
}

/** What the window answers to by keyboard; Tab, Enter and Space work everywhere besides. */
export const shortcutGroups: ShortcutGroup[] = [
  {
    title: 'Anywhere',
    keys: [
      ['Ctrl K', 'Command palette: views, runs, datasets, what can be done here'],
      [`Ctrl 1 – Ctrl ${String(views.length)}`, 'The views, from Datasets to Machine'],
      ['/', 'Find in this view'],
      ['Ctrl O', 'Import data'],
      ['Ctrl Shift O', 'Open a recipe'],
      ['Ctrl ,', 'Settings'],
      ['Ctrl + or Ctrl −', 'Larger or smaller; Ctrl 0 as it was'],
      ['?', 'This sheet'],
    ],
  },
  {
    title: 'Lists and tables',
    keys: [
      ['↑ or ↓', 'One row'],
      ['PageUp or PageDown', 'A page'],
      ['Home or End', 'First, last'],
      ['Enter', 'Open'],
      ['Space', 'Select a run'],
    ],
  },
  {
    title: 'Datasets',
    keys: [
      ['Alt ← or Alt →', 'The example before, the next one'],
      ['← or →', 'From token to token; Escape lets go'],
      ['↑ or ↓', 'The budget under Lengths, by 64; PageUp, PageDown by 1,024'],
    ],
  },
  {
    title: 'Packing',
    keys: [
      ['← ↑ → ↓', 'From tile to tile, token to token'],
      ['+ or −', 'Nearer, further'],
      ['Enter', 'Open the example'],
      ['Escape', 'One level out'],
    ],
  },
  {
    title: 'Charts, by mouse',
    keys: [
      ['Wheel', 'Zoom at the pointer'],
      ['Drag', 'Zoom in on a stretch'],
      ['Shift Drag', 'Move'],
      ['Double click', 'Show all again'],
    ],
  },
];

/** `Ctrl + or Ctrl −` as its alternatives, each of its keys: `[['Ctrl', '+'], ['Ctrl', '−']]`. */
export function keysOf(text: string): string[][] {
  return text
    .split(/ or | – /)
    .map((one) => (/^(Double click|[←↑→↓ ]+)$/.test(one) ? [one] : one.split(' ')));
}
