import { forWindow } from '../../../main/contract/wayOut.ts';
import { counted } from '../../../main/contract/counted.ts';
import type { RunDetail } from '../../../main/contract/runs.ts';
import { decimal, integer, sentence } from '../../format.ts';

type RunEvent = RunDetail['events'][number];
type Data = RunEvent['data'];

interface Words {
  /** What happened, in a word or two. */
  what: string;
  details: string;
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
const way = (hint: unknown) => forWindow(text(hint) ?? '') || undefined;
const number = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);
/** Sentences, each with its full stop. */
const sentences = (...parts: (string | undefined)[]) =>
  parts.flatMap((part) => (part === undefined ? [] : [sentence(part)])).join(' ');

const endings: Readonly<Record<string, string>> = {
  completed: 'All its steps are taken',
  'parent-gone': 'Its core was gone: it saved and ended',
  stopped: 'On request, saved',
};

const kinds: Readonly<Record<string, [string, (data: Data) => string]>> = {
  eval: ['Evaluation', evaluationWords],
  checkpoint: ['Checkpoint', ({ path }) => `Saved as ${text(path)?.split(/[\\/]/).at(-1) ?? 'a checkpoint'}`],
  profile: ['Profile', () => 'One step measured, shown under Profile'],
  sample: [
    'Answer',
    ({ position, text: said }) => `Prompt ${integer(number(position) + 1)}: ${text(said) ?? '–'}`,
  ],
  warning: ['Warning', ({ message, hint }) => sentences(text(message), way(hint))],
  error: ['Error', ({ message, hint }) => sentences(text(message), way(hint))],
  failed: ['Failed', ({ message, hint }) => sentences(text(message), way(hint))],
  paused: [
    'Paused',
    ({ message, hint }) => (text(message) === undefined ? 'On request' : sentences(text(message), way(hint))),
  ],
  resumed: ['Resumed', () => 'Goes on where it was'],
  done: ['Ended', ({ reason }) => endings[text(reason) ?? ''] ?? text(reason) ?? ''],
  coreDied: [
    'Core died',
    ({ saved }) =>
      typeof saved === 'number'
        ? `The engine noticed, saved step ${integer(saved)} and ended`
        : 'The engine ended with it; nothing was saved',
  ],
};

/** An event in words; what this version does not know of is listed as it came. */
export function eventWords({ kind, data }: RunEvent): Words {
  const known = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  return known === undefined
    ? { what: kind, details: listed(data) }
    : { what: known[0], details: known[1](data) };
}

function evaluationWords({ phase, loss, tokens, best }: Data): string {
  const value = number(loss);
  const when = phase === 'before' ? 'Before training: held-out loss' : 'Held-out loss';
  const found = Number.isFinite(value)
    ? `${decimal(value, 3)}, perplexity ${decimal(Math.exp(value), 2)}`
    : 'is no number';
  return `${when} ${found}, over ${counted(number(tokens), 'token')}${best === true ? '; the lowest so far' : ''}`;
}

function listed(data: Data): string {
  return Object.entries(data)
    .flatMap(([key, value]) => {
      if (value === true) return [key];
      if (typeof value === 'number') return [`${key} ${figure(value)}`];
      return typeof value === 'string' ? [`${key} ${value}`] : [];
    })
    .join(' · ');
}

function figure(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  return Number.isInteger(value) ? integer(value) : String(Number(value.toPrecision(4)));
}
