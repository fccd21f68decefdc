import { Dict, type Value } from '../template/values.ts';
import type { RowFormat } from './mapping.ts';

export interface Detection {
  format: RowFormat;
  /** 1: the row's own names say it; less where names are only like those. */
  confidence: number;
  reason: string;
}

type Detector = (row: Dict) => Detection | undefined;

const detectors: readonly Detector[] = [
  (row) => {
    const key = ['messages', 'conversations', 'conversation'].find((name) => row.get(name) !== undefined);
    if (key === undefined) return undefined;
    const list = row.get(key);
    const first: Value | undefined = Array.isArray(list) ? list[0] : undefined;
    const isShareGpt = first instanceof Dict ? first.has('from') && first.has('value') : key !== 'messages';
    const names = isShareGpt ? 'from/value' : 'role/content';
    return { format: isShareGpt ? 'sharegpt' : 'messages', confidence: 1, reason: `'${key}' with ${names}` };
  },
  (row) =>
    row.has('instruction') && (row.has('output') || row.has('response'))
      ? { format: 'alpaca', confidence: 1, reason: "'instruction' and 'output'" }
      : undefined,
  (row) => {
    const pairs = [
      ['prompt', 'completion', 1],
      ['prompt', 'response', 0.8],
      ['question', 'answer', 0.7],
      ['query', 'response', 0.7],
      ['input', 'output', 0.6],
    ] as const;
    const pair = pairs.find(([prompt, completion]) => row.has(prompt) && row.has(completion));
    if (pair === undefined) return undefined;
    return { format: 'completion', confidence: pair[2], reason: `'${pair[0]}' and '${pair[1]}'` };
  },
  (row) => (row.has('text') ? { format: 'text', confidence: 1, reason: "'text'" } : undefined),
];

/** What a row is by its columns; undefined where it is none of the five kinds. */
export function detectFormat(row: Dict): Detection | undefined {
  for (const detect of detectors) {
    const found = detect(row);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Why a row is none of the kinds, naming what it has. */
export function describeUnknown(row: Dict): string {
  const names = row.keys().map(String);
  if (names.length === 0) return 'an object without fields';
  const shown = names
    .slice(0, 8)
    .map((name) => `'${name.slice(0, 40)}'`)
    .join(', ');
  const more = names.length > 8 ? ` and ${String(names.length - 8)} more` : '';
  const hint =
    'expected messages, conversations, instruction/output, prompt/completion or text, or a mapping of columns ' +
    '(in Columns, or --column text=NAME)';
  return `the columns ${shown}${more} are no known kind of row: ${hint}`;
}
