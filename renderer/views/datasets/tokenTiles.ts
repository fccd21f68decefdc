import { whyNames, type ExampleOrigins, type ExampleTokens } from '../../../main/contract/datasets.ts';

export type WhyName = (typeof whyNames)[number];

/** A piece of a tile: text as it is, or a mark for what would not show. */
export interface Glyph {
  text: string;
  isMark: boolean;
}

export interface Tile {
  position: number;
  glyphs: Glyph[];
  isSupervised: boolean;
  isSpecial: boolean;
}

export interface Section {
  role: string;
  message: number | undefined;
  from: number;
  /** Exclusive. */
  to: number;
  numSupervised: number;
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function tokenBytes({ bytes, byteOffsets }: ExampleTokens, position: number): Uint8Array {
  return bytes.subarray(byteOffsets[position] ?? 0, byteOffsets[position + 1] ?? 0);
}

/** `F0 9F` */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(' ');
}

/** A token as it is drawn: spaces as dots, line breaks and tabs as arrows, parts of a character as their bytes. */
export function glyphsOf(bytes: Uint8Array): Glyph[] {
  let text: string;
  try {
    text = strict.decode(bytes);
  } catch {
    return [{ text: hex(bytes), isMark: true }];
  }
  if (text === '') return [{ text: '∅', isMark: true }];
  const parts = text.match(/\r|\n|\t|[^\r\n\t]+/g) ?? [];
  return parts.flatMap((part): Glyph[] => {
    if (part === '\n')
      return [
        { text: '↵', isMark: true },
        { text: '\n', isMark: false },
      ];
    if (part === '\t') return [{ text: '→', isMark: true }];
    if (part === '\r') return [{ text: '␍', isMark: true }];
    return [{ text: part.replaceAll(' ', '·'), isMark: false }];
  });
}

export function tilesOf(example: ExampleTokens, from: number, to: number): Tile[] {
  return Array.from({ length: to - from }, (_, i) => {
    const position = from + i;
    return {
      position,
      glyphs: glyphsOf(tokenBytes(example, position)),
      isSupervised: example.supervised[position] === 1,
      isSpecial: example.special[position] === 1,
    };
  });
}

/** Stretches of text that are all supervised or all context, for reading characters instead of tokens. */
export function stretchesOf(
  example: ExampleTokens,
  from: number,
  to: number,
): { text: string; isSupervised: boolean }[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const stretches: { text: string; isSupervised: boolean }[] = [];
  for (let position = from; position < to; position++) {
    const text = decoder.decode(tokenBytes(example, position), { stream: position < to - 1 });
    const isSupervised = example.supervised[position] === 1;
    const last = stretches.at(-1);
    if (last?.isSupervised === isSupervised) last.text += text;
    else stretches.push({ text, isSupervised });
  }
  return stretches;
}

/** The turns of an example; without origins, one stretch that is all of it. */
export function sectionsOf(example: ExampleTokens, origins: ExampleOrigins | undefined): Section[] {
  const whole: ExampleOrigins['turns'] = [{ role: example.kind, from: 0, to: example.ids.length }];
  return (origins?.turns ?? whole).map((turn) => ({
    role: turn.role,
    message: turn.message,
    from: turn.from,
    to: turn.to,
    numSupervised: countOnes(example.supervised, turn.from, turn.to),
  }));
}

/** [begin, end, supervised] along the example, in order. */
export function runsOf(supervised: Uint8Array): [number, number, boolean][] {
  const runs: [number, number, boolean][] = [];
  for (let begin = 0; begin < supervised.length;) {
    let end = begin + 1;
    while (end < supervised.length && supervised[end] === supervised[begin]) end += 1;
    runs.push([begin, end, supervised[begin] === 1]);
    begin = end;
  }
  return runs;
}

const partNames: Record<WhyName, string> = {
  template: 'Template’s own text',
  header: 'Headers of answers',
  system: 'System',
  user: 'User',
  tool: 'Tool',
  assistant: 'Content',
  reasoning: 'Reasoning',
  toolCall: 'Tool calls',
  endOfTurn: 'End of turn',
  other: 'Text',
};

/** Tokens by what they are, largest first: those learned and those that are not. */
export function countParts(example: ExampleTokens, origins: ExampleOrigins) {
  const counts = [new Map<string, number>(), new Map<string, number>()] as const;
  for (const [position, code] of origins.why.entries()) {
    const name = partNames[whyNames[code] ?? 'other'];
    const part = counts[example.supervised[position] === 1 ? 0 : 1];
    part.set(name, (part.get(name) ?? 0) + 1);
  }
  const [learned, context] = counts.map((part) => [...part].sort((a, b) => b[1] - a[1]));
  return { learned: learned ?? [], context: context ?? [] };
}

/** Why a token is learned, or is not, in one sentence. */
export function whyOf(
  why: WhyName,
  isSupervised: boolean,
  position: number,
  section: Pick<Section, 'role' | 'message'>,
): string {
  const turn = section.message === undefined ? '' : `, turn ${String(section.message + 1)}`;
  if (isSupervised && position === 0)
    return 'Marked as learned, but nothing stands before it to predict it from.';
  if (isSupervised)
    return `${learnedBecause[why]}${turn}. The span was marked while rendering, not found by searching.`;
  return contextBecause(why, section.role, turn);
}

const learnedBecause: Record<WhyName, string> = {
  template: 'Inside the assistant’s answer, written by the template',
  header: 'The header of an answer, learned because everything is',
  system: 'The system message, learned because everything is',
  user: 'The user’s message, learned because everything is',
  tool: 'A tool’s answer, learned because everything is',
  assistant: 'Inside the assistant’s content',
  reasoning: 'Inside the assistant’s reasoning',
  toolCall: 'Inside the assistant’s tool call',
  endOfTurn: 'The assistant ends its turn here and learns to',
  other: 'Part of the text',
};

function contextBecause(why: WhyName, role: string, turn: string): string {
  if (why === 'header') return `The header of an answer${turn}: the template writes it, not the model.`;
  if (why === 'template') return `The template’s own text${turn}: read, never predicted.`;
  if (why === 'endOfTurn') return `The end of a turn that is not learned${turn}.`;
  if (why === 'assistant' || why === 'reasoning' || why === 'toolCall')
    return `Said by the assistant${turn}, but left out by the supervision that was chosen.`;
  return `Part of the ${role} message${turn}: read, never predicted.`;
}

function countOnes(marks: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += marks[i] ?? 0;
  return sum;
}
