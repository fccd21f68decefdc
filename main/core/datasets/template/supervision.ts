/** Which characters of a render the model learns to say, from where each of them came. */
import { whyNames } from '../../../contract/datasets.ts';
import { TemplateError } from './errors.ts';
import { KIND, isAssistantRole, kindOf, turnOf } from './origins.ts';
import type { Kind, Trace } from './origins.ts';
import { findReasoning } from './reasoning.ts';
import { toStr } from './print.ts';
import { isStr, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { endMarkerLength, headerLength, lastHeaderEnd } from './turnHeader.ts';
import type { Value } from './values.ts';

export interface SupervisionOptions {
  /** `assistant`: every answer; `last`: the last one; `all`: the whole text. */
  readonly turns: 'assistant' | 'last' | 'all';
  /** false: reasoning, an empty block of it too, is not supervised. */
  readonly reasoning: boolean;
}

export const DEFAULT_SUPERVISION: SupervisionOptions = { turns: 'assistant', reasoning: true };

/** What a stretch of text is, for showing why it is or is not supervised. */
export type Why = (typeof whyNames)[number];

export interface OriginRun {
  /** Code points. */
  readonly start: number;
  readonly end: number;
  readonly why: Why;
  /** Index of the message whose turn it is; absent outside every turn. */
  readonly message?: number;
}

export interface Supervised {
  readonly text: string;
  /** [start, end) in code points, ascending, never touching. */
  readonly supervised: readonly (readonly [number, number])[];
  /** The whole text in runs. */
  readonly origins: readonly OriginRun[];
}

/** What the template's surroundings tell. */
export interface RenderFacts {
  readonly eosToken: Value | undefined;
  readonly promptText: () => string | null;
  /** Whether no word of the assistant's messages is in the text, however they read. */
  readonly saysNothing: () => boolean;
}

interface Piece {
  readonly start: number;
  readonly end: number;
  kind: Kind;
  turn: number;
}

/** Text and mask of a traced render. Throws UntraceableError where no assistant's turn can be followed. */
export function superviseRender(
  traced: Str,
  trace: Trace,
  options: SupervisionOptions,
  facts: RenderFacts,
): Supervised {
  return new Supervisor(traced, trace, facts).run(options);
}

class Supervisor {
  readonly #text: string;
  readonly #trace: Trace;
  readonly #facts: RenderFacts;
  readonly #eosToken: string;
  readonly #pieces: Piece[];
  readonly #isSupervised: Uint8Array;
  /** Index of whyNames for each UTF-16 unit. */
  readonly #whyAt: Uint8Array;

  constructor(traced: Str, trace: Trace, facts: RenderFacts) {
    this.#text = textOf(traced);
    this.#trace = trace;
    this.#facts = facts;
    this.#eosToken =
      facts.eosToken !== undefined && isStr(facts.eosToken) ? textOf(toStr(facts.eosToken)) : '';
    this.#pieces = settle(piecesOf(traced), trace);
    this.#isSupervised = new Uint8Array(this.#text.length);
    this.#whyAt = new Uint8Array(this.#text.length);
  }

  run(options: SupervisionOptions): Supervised {
    this.#adoptLooseText();
    this.#returnAsides();
    for (const piece of this.#pieces) this.#setWhy(piece.start, piece.end, this.#whyOf(piece));
    const turns = this.#assistantTurns().map(fromSpeech);
    if (options.turns !== 'all') this.#refuseIfUntraceable(turns);
    const last = turns.at(-1);
    for (const pieces of turns) {
      const isWanted = options.turns === 'assistant' || (options.turns === 'last' && pieces === last);
      this.#superviseTurn(pieces, isWanted, options.reasoning);
    }
    if (options.turns === 'all') this.#superviseAll(options.reasoning);
    return this.#result();
  }

  #superviseAll(withReasoning: boolean): void {
    const reasoning = whyNames.indexOf('reasoning');
    for (let i = 0; i < this.#isSupervised.length; i++) {
      this.#isSupervised[i] = withReasoning || this.#whyAt[i] !== reasoning ? 1 : 0;
    }
  }

  #setWhy(start: number, end: number, why: Why): void {
    this.#whyAt.fill(whyNames.indexOf(why), start, end);
  }

  #isAssistant(turn: number): boolean {
    return turn !== 0 && isAssistantRole(this.#trace.turns[turn]?.role ?? '');
  }

  #whyOf(piece: Piece): Why {
    if (piece.kind === KIND.literal || piece.kind === KIND.role) return 'template';
    const role = this.#trace.turns[piece.turn]?.role ?? '';
    if (piece.kind === KIND.foreign || piece.kind === KIND.field) return 'other';
    if (this.#isAssistant(piece.turn)) {
      if (piece.kind === KIND.reasoning) return 'reasoning';
      return piece.kind === KIND.toolCall ? 'toolCall' : 'assistant';
    }
    if (role === 'system' || role === 'developer') return 'system';
    return role === 'tool' || role === 'ipython' || role === 'function' ? 'tool' : 'user';
  }

  /** Pieces of each assistant's turn that shows in the text, in order. */
  #assistantTurns(): Piece[][] {
    const byTurn = new Map<number, Piece[]>();
    for (const piece of this.#pieces) {
      if (!this.#isAssistant(piece.turn)) continue;
      const known = byTurn.get(piece.turn);
      if (known) known.push(piece);
      else byTurn.set(piece.turn, [piece]);
    }
    return [...byTurn.values()].filter((pieces) =>
      pieces.some((p) => this.#text.slice(p.start, p.end).trim() !== ''),
    );
  }

  #refuseIfUntraceable(turns: Piece[][]): void {
    if (turns.length > 0 || this.#text === '') return;
    const hasAnswer = this.#trace.turns.some((turn) => turn.isExplicit && isAssistantRole(turn.role));
    if (hasAnswer && !this.#facts.saysNothing()) {
      throw new TemplateError(
        'UntraceableError',
        'no character of an assistant message can be followed into the text that this template prints: ' +
          'mark what the assistant says with {% generation %} … {% endgeneration %} in the template',
      );
    }
  }

  /**
   * Text outside every turn goes to the assistant's turn that it stands within, or whose first word it leads to
   * once its header is over.
   */
  #adoptLooseText(): void {
    const pieces = this.#pieces;
    for (let i = 0; i < pieces.length; i++) {
      const piece = pieces[i];
      if (piece?.turn !== 0) continue;
      const before = pieces[i - 1];
      const after = pieces[i + 1];
      if (!after || !this.#isAssistant(after.turn)) continue;
      if (before?.turn === after.turn) {
        piece.turn = after.turn;
      } else if (isSpeech(after.kind)) {
        const header = lastHeaderEnd(
          this.#text.slice(piece.start, piece.end),
          this.#facts.promptText(),
          this.#eosToken,
        );
        if (header === -1 || piece.start + header >= piece.end) continue;
        const rest: Piece = {
          start: piece.start + header,
          end: piece.end,
          kind: KIND.literal,
          turn: after.turn,
        };
        pieces.splice(i, 1, { ...piece, end: rest.start }, rest);
        i++;
      }
    }
  }

  /**
   * A template may walk through the messages again within a turn, to count calls, say. What it prints there of its
   * own, in the middle of one turn and when the other has had its say, belongs to the turn that it stands in.
   */
  #returnAsides(): void {
    const pieces = this.#pieces;
    const spoke = new Set<number>();
    for (let from = 0; from < pieces.length;) {
      const turn = pieces[from]?.turn ?? 0;
      let to = from + 1;
      while (pieces[to]?.turn === turn) to++;
      const stretch = pieces.slice(from, to);
      const around = pieces[from - 1]?.turn ?? 0;
      const isAside = around !== 0 && around !== turn && pieces[to]?.turn === around && spoke.has(turn);
      if (isAside && stretch.every(({ kind }) => kind === KIND.literal))
        for (const piece of stretch) piece.turn = around;
      if (stretch.some(({ kind }) => isSpeech(kind))) spoke.add(turn);
      from = to;
    }
  }

  #superviseTurn(pieces: Piece[], isWanted: boolean, withReasoning: boolean): void {
    const start = pieces[0]?.start ?? 0;
    const bodyStart = start + this.#headerLength(pieces);
    this.#setWhy(start, bodyStart, 'header');
    for (const piece of pieces) {
      const from = Math.max(piece.start, bodyStart);
      if (isWanted && piece.kind !== KIND.foreign && from < piece.end)
        this.#isSupervised.fill(1, from, piece.end);
    }
    this.#trimEnd(pieces, bodyStart);
    this.#superviseFollowingMarkers(pieces, isWanted);
    for (const [from, to] of findReasoning(this.#text, pieces, bodyStart)) {
      this.#setWhy(from, to, 'reasoning');
      if (!withReasoning) this.#isSupervised.fill(0, from, to);
    }
  }

  /** Header of a turn: found in what the template prints before the assistant's first word. */
  #headerLength(pieces: Piece[]): number {
    const start = pieces[0]?.start ?? 0;
    let end = start;
    let role: [number, number] | undefined;
    for (const piece of pieces) {
      if (isSpeech(piece.kind) || piece.start !== end) break;
      if (piece.kind === KIND.role) role ??= [piece.start - start, piece.end - start];
      end = piece.end;
    }
    // A template that does not tell whose turn it is prints the opening marker outside of it: `<|` assistant `|>`.
    const before = this.#pieces.find((piece) => piece.end === start);
    const opened =
      role?.[0] === 0 && before?.kind === KIND.literal
        ? (/[<[][^<>[\]\n]*$/.exec(this.#text.slice(before.start, start))?.[0].length ?? 0)
        : 0;
    role = role && [role[0] + opened, role[1] + opened];
    const lead = this.#text.slice(start - opened, end);
    return headerLength(lead, role, this.#facts.promptText(), this.#eosToken) - opened;
  }

  /** Takes the white space after the end-of-turn token out of the mask. */
  #trimEnd(pieces: Piece[], bodyStart: number): void {
    const end = pieces.at(-1)?.end ?? 0;
    const spoken = pieces.findLast((piece) => isSpeech(piece.kind) || piece.kind === KIND.foreign);
    const from = Math.max(bodyStart, spoken?.end ?? 0);
    if (this.#text.slice(from, end).trim() === '') return;
    const trimmed = from + this.#text.slice(from, end).trimEnd().length;
    this.#isSupervised.fill(0, trimmed, end);
    for (let at = from; at < trimmed; at++) {
      const length = endMarkerLength(this.#text, at, this.#eosToken);
      if (length === 0) continue;
      this.#setWhy(at, at + length, 'endOfTurn');
      at += length - 1;
      for (let blank = at + 1; /\s/.test(this.#text[blank] ?? 'x') && blank < end; blank++)
        this.#isSupervised[blank] = 0;
    }
  }

  /**
   * The end-of-turn token that a template prints at the start of the next turn, or the end-of-sequence token after
   * the last message: the assistant's, when its turn was the last one that showed.
   */
  #superviseFollowingMarkers(pieces: Piece[], isWanted: boolean): void {
    const end = pieces.at(-1)?.end ?? 0;
    const blanks = this.#text.slice(end).search(/\S/);
    if (blanks === -1) return;
    const at = end + blanks;
    const next = this.#pieces.find((piece) => piece.end > at);
    if (next?.kind !== KIND.literal) return;
    const hasOwnMarker = this.#whyAt.subarray(pieces[0]?.start, end).includes(whyNames.indexOf('endOfTurn'));
    if (hasOwnMarker && next.turn !== 0) return;
    const length = endMarkerLength(this.#text, at, this.#eosToken);
    if (length === 0) return;
    this.#setWhy(at, at + length, 'endOfTurn');
    if (isWanted) this.#isSupervised.fill(1, at, at + length);
  }

  #result(): Supervised {
    const toPoint = pointCounter(this.#text);
    const origins = this.#runs().map(({ start, end, why, message }) => ({
      start: toPoint(start),
      end: toPoint(end),
      why,
      ...(message === undefined ? {} : { message }),
    }));
    const toSpanPoint = pointCounter(this.#text);
    const supervised = this.#spans().map(([start, end]): [number, number] => [
      toSpanPoint(start),
      toSpanPoint(end),
    ]);
    return { text: this.#text, supervised, origins };
  }

  /** The mask as [start, end) in UTF-16 units. */
  #spans(): [number, number][] {
    const mask = this.#isSupervised;
    const spans: [number, number][] = [];
    for (let start = mask.indexOf(1); start !== -1;) {
      const stop = mask.indexOf(0, start);
      const end = stop === -1 ? mask.length : stop;
      spans.push([start, end]);
      start = mask.indexOf(1, end);
    }
    return spans;
  }

  /** What each stretch of text is, in UTF-16 units. */
  #runs(): { start: number; end: number; why: Why; message: number | undefined }[] {
    const whyAt = this.#whyAt;
    const numMessages = this.#trace.turns.filter((turn) => turn.isExplicit).length;
    const runs: { start: number; end: number; why: Why; message: number | undefined }[] = [];
    for (const piece of this.#pieces) {
      const message = piece.turn > 0 && piece.turn <= numMessages ? piece.turn - 1 : undefined;
      for (let start = piece.start; start < piece.end;) {
        const code = whyAt[start] ?? 0;
        let end = start + 1;
        while (end < piece.end && whyAt[end] === code) end++;
        const why = whyNames[code] ?? 'template';
        const last = runs.at(-1);
        if (last?.why === why && last.message === message) last.end = end;
        else runs.push({ start, end, why, message });
        start = end;
      }
    }
    return runs;
  }
}

/** Code point index of UTF-16 offsets that are asked for in rising order. */
export function pointCounter(text: string): (unit: number) => number {
  if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return (unit) => unit;
  let at = 0;
  let numPairs = 0;
  return (unit) => {
    for (; at < unit; at++) if (isPairStart(text, at)) numPairs++;
    return unit - numPairs;
  };
}

function isPairStart(text: string, unit: number): boolean {
  const code = text.charCodeAt(unit);
  if (code < 0xd800 || code > 0xdbff) return false;
  const next = text.charCodeAt(unit + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}

/**
 * A turn from the stretch in which its message begins to speak: what a template prints of it earlier and elsewhere, its
 * role in a summary, say, is no part of the turn.
 */
function fromSpeech(pieces: Piece[]): Piece[] {
  const first = pieces.findIndex(({ kind }) => isSpeech(kind));
  let start = first;
  while (start > 0 && pieces[start]?.start === pieces[start - 1]?.end) start--;
  return first === -1 ? pieces : pieces.slice(start);
}

/** What the message says, as against its frame. */
function isSpeech(kind: Kind): boolean {
  return kind === KIND.content || kind === KIND.reasoning || kind === KIND.toolCall;
}

function piecesOf(traced: Str): Piece[] {
  if (typeof traced === 'string')
    return traced === '' ? [] : [{ start: 0, end: traced.length, kind: KIND.literal, turn: 0 }];
  const pieces: Piece[] = [];
  let start = 0;
  for (let i = 0; i < traced.runs.length; i += 2) {
    const end = traced.runs[i] ?? 0;
    const from = traced.runs[i + 1] ?? 0;
    pieces.push({ start, end, kind: kindOf(from), turn: turnOf(from) });
    start = end;
  }
  return pieces;
}

/** Gives inferred turns the message they turned out to be, where that is certain; else none. */
function settle(pieces: Piece[], trace: Trace): Piece[] {
  for (const piece of pieces) {
    const turn = trace.turns[piece.turn];
    if (!turn || piece.turn === 0 || turn.isExplicit) continue;
    const candidates = new Set(turn.printed);
    if (turn.message !== 0) candidates.add(turn.message);
    const [only] = candidates;
    if (candidates.size === 1 && only !== undefined) piece.turn = only;
    else if (candidates.size > 1 || turn.role === '') piece.turn = 0;
  }
  return pieces;
}
