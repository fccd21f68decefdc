/**
 * JSON as Python's `json` module reads it: int and float told apart, big integers exact, keys in file order
 * whatever they look like, NaN and Infinity accepted, the last of equal keys winning.
 */
import { Dict, Float, normalInt } from './template/values.ts';
import type { Value } from './template/values.ts';

/** Invalid JSON; `position` counts UTF-16 units from the start of the text. */
export class JsonError extends Error {
  readonly position: number;

  constructor(problem: string, text: string, position: number) {
    const before = text.slice(0, position);
    const line = before.split('\n').length;
    const column = position - before.lastIndexOf('\n');
    super(`${problem}: line ${line} column ${column} (char ${position})`);
    this.name = 'JsonError';
    this.position = position;
  }
}

/** Parses one JSON text. Throws JsonError with Python's wording. */
export function parsePythonJson(text: string): Value {
  return new Parser(text).parse();
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const CONSTANTS: readonly (readonly [string, Value])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', new Float(NaN)],
  ['Infinity', new Float(Infinity)],
  ['-Infinity', new Float(-Infinity)],
];
const ESCAPES: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};
/** Python's recursion limit stops nesting near here; a clear error beats a broken stack. */
export const MAX_DEPTH = 900;

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): Value {
    if (this.#text.startsWith('\ufeff')) this.#fail('Unexpected UTF-8 BOM', 0);
    this.#skipBlanks();
    const value = this.#value();
    this.#skipBlanks();
    if (this.#at < this.#text.length) this.#fail('Extra data');
    return value;
  }

  #fail(problem: string, position = this.#at): never {
    throw new JsonError(problem, this.#text, position);
  }

  #skipBlanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.#at++;
    }
  }

  #value(): Value {
    const text = this.#text;
    const char = text[this.#at];
    if (char === '"') return this.#string();
    if (char === '{') return this.#nested(() => this.#object());
    if (char === '[') return this.#nested(() => this.#array());
    for (const [word, value] of CONSTANTS) {
      if (char === word[0] && text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#number();
  }

  #nested(parse: () => Value): Value {
    if (++this.#depth > MAX_DEPTH) this.#fail('Nested too deeply');
    const value = parse();
    this.#depth--;
    return value;
  }

  #number(): Value {
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (!match) this.#fail('Expecting value');
    this.#at = NUMBER.lastIndex;
    if (match[1] !== undefined || match[2] !== undefined) return new Float(Number(match[0]));
    const small = Number(match[0]);
    return Number.isSafeInteger(small) ? small + 0 : normalInt(BigInt(match[0]));
  }

  #string(): string {
    const text = this.#text;
    const start = this.#at++;
    let result = '';
    for (;;) {
      PLAIN.lastIndex = this.#at;
      PLAIN.exec(text);
      result += text.slice(this.#at, PLAIN.lastIndex);
      this.#at = PLAIN.lastIndex;
      const char = text[this.#at];
      if (char === undefined) this.#fail('Unterminated string starting at', start);
      this.#at++;
      if (char === '"') return result;
      if (char !== '\\') this.#fail('Invalid control character at', this.#at - 1);
      result += this.#escape(start);
    }
  }

  #escape(start: number): string {
    const char = this.#text[this.#at++];
    if (char === undefined) this.#fail('Unterminated string starting at', start);
    if (char === 'u') {
      const digits = this.#text.slice(this.#at, this.#at + 4);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.#fail('Invalid \\uXXXX escape', this.#at - 1);
      this.#at += 4;
      return String.fromCharCode(parseInt(digits, 16));
    }
    return ESCAPES[char] ?? this.#fail('Invalid \\escape', this.#at - 2);
  }

  #array(): Value {
    const items: Value[] = [];
    this.#at++;
    this.#skipBlanks();
    if (this.#take(']')) return items;
    for (;;) {
      items.push(this.#value());
      this.#skipBlanks();
      if (this.#take(']')) return items;
      if (!this.#take(',')) this.#fail("Expecting ',' delimiter");
      this.#skipBlanks();
    }
  }

  #object(): Value {
    const dict = new Dict();
    this.#at++;
    this.#skipBlanks();
    if (this.#take('}')) return dict;
    for (;;) {
      if (this.#text[this.#at] !== '"') this.#fail('Expecting property name enclosed in double quotes');
      const key = this.#string();
      this.#skipBlanks();
      if (!this.#take(':')) this.#fail("Expecting ':' delimiter");
      this.#skipBlanks();
      dict.set(key, this.#value());
      this.#skipBlanks();
      if (this.#take('}')) return dict;
      if (!this.#take(',')) this.#fail("Expecting ',' delimiter");
      this.#skipBlanks();
    }
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }
}
