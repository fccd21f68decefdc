/** The reasoning in an assistant's turn. */
import { KIND } from './origins.ts';
import type { Kind } from './origins.ts';

interface Piece {
  readonly start: number;
  readonly end: number;
  readonly kind: Kind;
}

/** Tags that open a block of reasoning, and what closes it. */
const BLOCKS: readonly (readonly [open: string, close: string])[] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['<thought>', '</thought>'],
  ['<reasoning>', '</reasoning>'],
  ['[THINK]', '[/THINK]'],
  ['<seed:think>', '</seed:think>'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
  ['◁think▷', '◁/think▷'],
];

/**
 * Stretches [start, end) of reasoning in a turn, in UTF-16 units of `text`: the block that opens its body, with its
 * tags and the newlines after it, and every character of a reasoning field. `pieces` are the turn's.
 */
export function findReasoning(
  text: string,
  pieces: readonly Piece[],
  bodyStart: number,
): (readonly [number, number])[] {
  const found = pieces
    .filter((piece) => piece.kind === KIND.reasoning)
    .map((piece) => [piece.start, piece.end] as const);
  const block = findBlock(text, pieces, bodyStart);
  return block ? [block, ...found] : found;
}

function findBlock(
  text: string,
  pieces: readonly Piece[],
  bodyStart: number,
): readonly [number, number] | undefined {
  const end = pieces.at(-1)?.end ?? bodyStart;
  const first = bodyStart + text.slice(bodyStart, end).search(/\S/);
  const tags = BLOCKS.find(([open]) => text.startsWith(open, first) && first >= bodyStart);
  if (!tags) return undefined;
  const [open, close] = tags;
  const fieldEnd = pieces.findLast((piece) => piece.kind === KIND.reasoning)?.end ?? first + open.length;
  const closedAt = findClose(text, pieces, close, Math.max(first + open.length, fieldEnd), end);
  if (closedAt === -1) return undefined;
  const closeEnd = closedAt + close.length;
  const blanks = /^[\r\n]*/.exec(text.slice(closeEnd, end))?.[0].length ?? 0;
  return [bodyStart, closeEnd + blanks];
}

/** The template's own closing tag where it prints one; else the first in the content. */
function findClose(text: string, pieces: readonly Piece[], close: string, from: number, end: number): number {
  let first = -1;
  for (let at = text.indexOf(close, from); at !== -1 && at < end; at = text.indexOf(close, at + 1)) {
    if (first === -1) first = at;
    const piece = pieces.find((p) => p.start <= at && p.end > at);
    if (piece?.kind === KIND.literal) return at;
  }
  return first;
}
