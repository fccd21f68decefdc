/** The state of one render: where output goes, and whose turn is being printed. */
import { TemplateError } from './errors.ts';
import { KIND, isAssistantRole, kindOf, origin, roleOf, turnOf } from './origins.ts';
import type { Trace } from './origins.ts';
import { toStr } from './print.ts';
import { StrBuilder } from './taggedString.ts';
import type { Str, Tagged } from './taggedString.ts';
import { Dict } from './values.ts';
import type { Value } from './values.ts';

/** Names that a piece of a template sees. Loops, macros, `with` and blocks open a new scope; `if` does not. */
export class Scope {
  // Two lists, not a Map: scopes hold a handful of names and are made by the thousand.
  private readonly names: string[] = [];
  private readonly values: Value[] = [];
  private readonly parent: Scope | undefined;

  constructor(parent?: Scope) {
    this.parent = parent;
  }

  lookup(name: string): Value | undefined {
    const at = this.names.indexOf(name);
    return at === -1 ? this.parent?.lookup(name) : this.values[at];
  }

  set(name: string, value: Value): void {
    const at = this.names.indexOf(name);
    if (at === -1) {
      this.names.push(name);
      this.values.push(value);
    } else {
      this.values[at] = value;
    }
  }
}

const MAX_DEPTH = 200;

export class Runtime {
  #out = new StrBuilder();
  #turn = 0;
  #depth = 0;
  readonly #trace: Trace | undefined;

  /** With a trace, every character keeps its origin; without, rendering is plain and faster. */
  constructor(trace?: Trace) {
    this.#trace = trace;
  }

  /** Origin of the template's own text here; 0 outside every turn and in plain rendering. */
  get literalOrigin(): number {
    return this.#turn * 8;
  }

  get output(): Str {
    return this.#out.build();
  }

  printText(text: string): void {
    this.#out.addText(text, this.literalOrigin);
  }

  print(value: Value): void {
    const text = toStr(value);
    if (typeof text === 'string' || this.#turn === 0 || !this.#trace) this.#out.add(text, this.literalOrigin);
    else this.#printInTurn(text, this.#trace);
  }

  #printInTurn(text: Tagged, trace: Trace): void {
    const current = trace.turns[this.#turn];
    if (current && !current.isExplicit) {
      for (let i = 1; i < text.runs.length; i += 2) {
        const from = text.runs[i] ?? 0;
        if (kindOf(from) !== KIND.literal) current.printed.add(turnOf(from));
      }
    }
    const marked = current?.isExplicit ? this.#markForeign(text, trace, current.role) : text.runs;
    let start = 0;
    for (let i = 0; i < marked.length; i += 2) {
      const end = marked[i] ?? 0;
      this.#out.addText(text.text.slice(start, end), marked[i + 1] || this.literalOrigin);
      start = end;
    }
  }

  /**
   * A message's text printed in another's turn is not that message speaking: the name of the call in a tool's
   * answer, say. A string that also holds other turns' literals is a chat built up earlier, and stays as it is.
   */
  #markForeign(text: Tagged, trace: Trace, role: string): readonly number[] {
    const { runs } = text;
    let hasForeign = false;
    for (let i = 1; i < runs.length; i += 2) {
      const from = runs[i] ?? 0;
      if (turnOf(from) === 0 || turnOf(from) === this.#turn) continue;
      if (kindOf(from) === KIND.literal) return runs;
      hasForeign = true;
    }
    if (!hasForeign) return runs;
    return runs.map((from, i) => {
      if (i % 2 === 0 || turnOf(from) === 0 || turnOf(from) === this.#turn) return from;
      const isSameSide = isAssistantRole(role) && isAssistantRole(trace.turns[turnOf(from)]?.role ?? '');
      return isSameSide ? from : origin(this.#turn, KIND.foreign);
    });
  }

  /** What `body` prints, as a string. */
  capture(body: () => void): Str {
    const saved = this.#out;
    this.#out = new StrBuilder();
    if (++this.#depth > MAX_DEPTH)
      throw new TemplateError('RecursionError', 'maximum recursion depth exceeded');
    body();
    this.#depth--;
    const text = this.#out.build();
    this.#out = saved;
    return text;
  }

  /** Enters the turn of a loop's item. Give the result to `leave`. */
  enterItem(item: Value): number {
    if (!this.#trace) return 0;
    const saved = this.#turn;
    if (item instanceof Dict && item.turn !== 0) this.#turn = item.turn;
    else if (saved === 0) {
      const role = item instanceof Dict ? roleOf(item) : '';
      this.#turn = this.#trace.add({
        role,
        isExplicit: false,
        loopNumber: typeof item === 'number' ? item : undefined,
      });
    }
    return saved;
  }

  /** Enters the turn of the one message among a macro's arguments, if there is just one. */
  enterArguments(args: readonly Value[]): number {
    if (!this.#trace) return 0;
    const saved = this.#turn;
    const messages = args.filter((arg) => arg instanceof Dict && arg.turn !== 0);
    const [only] = messages;
    if (messages.length === 1 && only instanceof Dict) this.#turn = only.turn;
    return saved;
  }

  /** Enters what the template itself marks as the assistant's, unless an assistant's turn is on already. */
  enterGeneration(): number {
    if (!this.#trace) return 0;
    const saved = this.#turn;
    if (!isAssistantRole(this.#trace.turns[saved]?.role ?? '')) {
      this.#turn = this.#trace.add({ role: 'assistant', isExplicit: false, loopNumber: undefined });
    }
    return saved;
  }

  leave(saved: number): void {
    this.#turn = saved;
  }

  /** Notes that `messages[key]` was read: in a loop over numbers that tells whose round it is. */
  noteSubscript(key: Value, result: Value): void {
    if (!this.#trace || !(result instanceof Dict) || result.turn === 0) return;
    const current = this.#trace.turns[this.#turn];
    if (!current || current.isExplicit || current.message !== 0 || this.#turn === 0) return;
    if (current.loopNumber !== undefined && key === current.loopNumber) current.message = result.turn;
  }
}
