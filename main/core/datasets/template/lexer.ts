/**
 * Jinja2's lexer with trim_blocks and lstrip_blocks on, the trailing newline dropped, line statements off.
 * Source: jinja2/lexer.py 3.1.
 */
import { TemplateError } from './errors.ts';

export type TokenType =
  | 'data'
  | 'blockBegin'
  | 'blockEnd'
  | 'variableBegin'
  | 'variableEnd'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator'
  | 'end';

export interface Token {
  readonly type: TokenType;
  /** Decoded for strings, without underscores for numbers. */
  readonly value: string;
  readonly line: number;
}

/** What Python's `str.strip()` takes off, as the inside of a character class. */
export const PYTHON_SPACE =
  '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const S = `[${PYTHON_SPACE}]`;
const TAG_BEGIN = new RegExp(`\\{%([-+]?)${S}*raw${S}*(?:-%\\}${S}*|%\\})|\\{([%#{])([-+]?)`, 'g');
const RAW_END = new RegExp(`\\{%([-+]?)${S}*endraw${S}*(?:\\+%\\}|-%\\}${S}*|%\\}\\n?)`, 'g');
const COMMENT_END = new RegExp(`\\+#\\}|-#\\}${S}*|#\\}\\n?`, 'g');
const BLOCK_END = new RegExp(`\\+%\\}|-%\\}${S}*|%\\}\\n?`, 'y');
const VARIABLE_END = new RegExp(`-\\}\\}${S}*|\\}\\}`, 'y');
const BLANKS = new RegExp(`${S}+`, 'y');
const TRAILING_BLANKS = new RegExp(`${S}+$`);
const ONLY_BLANKS = new RegExp(`^${S}+$`);
const FLOAT = /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy;
const INTEGER = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const NAME = /[\p{L}\p{N}\p{M}_]+/uy;
const STRING = /'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y;
const CLOSERS: Record<string, string> = { '{': '}', '(': ')', '[': ']' };

/** Splits a template into tokens. Throws TemplateError (TemplateSyntaxError) with its line. */
export function tokenize(template: string): Token[] {
  return new Lexer(template).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #isLineStart = true;

  constructor(template: string) {
    const source = template.replace(/\r\n|\r/g, '\n');
    this.#source = source.endsWith('\n') ? source.slice(0, -1) : source;
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#root();
    this.#push('end', '');
    return this.#tokens;
  }

  #root(): void {
    TAG_BEGIN.lastIndex = this.#at;
    const match = TAG_BEGIN.exec(this.#source);
    if (!match) {
      this.#push('data', this.#source.slice(this.#at));
      this.#advance(this.#source.length);
      return;
    }
    const kind = match[2] ?? 'raw';
    this.#data(match.index, match[3] ?? match[1] ?? '', kind !== '{');
    this.#advance(TAG_BEGIN.lastIndex);
    if (kind === 'raw') this.#raw();
    else if (kind === '#') this.#comment();
    else if (kind === '%') this.#tag('blockBegin', 'blockEnd', BLOCK_END);
    else this.#tag('variableBegin', 'variableEnd', VARIABLE_END);
  }

  /** Text up to `end`, stripped as the tag that follows asks. */
  #data(end: number, sign: string, isStrippable: boolean): void {
    let text = this.#source.slice(this.#at, end);
    if (sign === '-') {
      text = text.replace(TRAILING_BLANKS, '');
    } else if (sign !== '+' && isStrippable) {
      const lineStart = text.lastIndexOf('\n') + 1;
      const isWholeLine = lineStart > 0 || this.#isLineStart;
      if (isWholeLine && ONLY_BLANKS.test(text.slice(lineStart))) text = text.slice(0, lineStart);
    }
    if (text !== '') this.#push('data', text);
    this.#advance(end);
  }

  #raw(): void {
    RAW_END.lastIndex = this.#at;
    const match = RAW_END.exec(this.#source);
    if (!match) this.#fail('Missing end of raw directive');
    this.#data(match.index, match[1] ?? '', true);
    this.#advance(RAW_END.lastIndex);
  }

  #comment(): void {
    COMMENT_END.lastIndex = this.#at;
    if (!COMMENT_END.test(this.#source)) this.#fail('Missing end of comment tag');
    this.#advance(COMMENT_END.lastIndex);
  }

  #tag(begin: TokenType, end: TokenType, endPattern: RegExp): void {
    const brackets: string[] = [];
    this.#push(begin, '');
    for (;;) {
      if (brackets.length === 0 && this.#match(endPattern) !== undefined) {
        this.#push(end, '');
        return;
      }
      if (this.#at >= this.#source.length) return;
      this.#tagToken(brackets);
    }
  }

  #tagToken(brackets: string[]): void {
    if (this.#match(BLANKS) !== undefined) return;
    const line = this.#line;
    const number = this.#match(FLOAT);
    if (number !== undefined) {
      this.#push('float', number.replaceAll('_', ''), line);
      return;
    }
    const word = this.#word();
    if (word) {
      this.#push(word[0], word[1], line);
      return;
    }
    const operator = this.#match(OPERATOR);
    if (operator === undefined) {
      this.#fail(`unexpected char ${JSON.stringify(this.#source[this.#at])} at ${this.#at}`);
    }
    const closer = CLOSERS[operator];
    if (closer !== undefined) brackets.push(closer);
    else if (/[})\]]/.test(operator)) {
      const expected = brackets.pop();
      if (expected === undefined) this.#fail(`unexpected '${operator}'`);
      if (expected !== operator) this.#fail(`unexpected '${operator}', expected '${expected}'`);
    }
    this.#push('operator', operator, line);
  }

  #word(): [TokenType, string] | undefined {
    const integer = this.#match(INTEGER);
    if (integer !== undefined) return ['integer', integer.replaceAll('_', '')];
    const name = this.#match(NAME);
    if (name !== undefined) return ['name', name];
    const string = this.#match(STRING);
    return string === undefined ? undefined : ['string', this.#unescape(string.slice(1, -1))];
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#source)?.[0];
    if (text === undefined || text === '') return undefined;
    this.#advance(this.#at + text.length);
    return text;
  }

  #advance(end: number): void {
    for (
      let i = this.#source.indexOf('\n', this.#at);
      i !== -1 && i < end;
      i = this.#source.indexOf('\n', i + 1)
    ) {
      this.#line++;
    }
    this.#at = end;
    this.#isLineStart = this.#source[end - 1] === '\n';
  }

  #push(type: TokenType, value: string, line = this.#line): void {
    this.#tokens.push({ type, value, line });
  }

  #fail(message: string): never {
    throw new TemplateError('TemplateSyntaxError', message, this.#line);
  }

  /** Python's `unicode-escape` decoding: an unknown escape stays as written. */
  #unescape(body: string): string {
    return body.replace(
      /\\(?:\n|([0-7]{1,3})|x([\da-fA-F]{0,2})|u([\da-fA-F]{0,4})|U([\da-fA-F]{0,8})|(N\{[^}]*\}?)|(.))/gs,
      (
        whole: string,
        octal?: string,
        hex2?: string,
        hex4?: string,
        hex8?: string,
        named?: string,
        char?: string,
      ) => {
        if (octal !== undefined) return String.fromCodePoint(parseInt(octal, 8));
        for (const [digits, width] of [
          [hex2, 2],
          [hex4, 4],
          [hex8, 8],
        ] as const) {
          if (digits === undefined) continue;
          const code = parseInt(digits, 16);
          if (digits.length < width || code > 0x10ffff)
            this.#fail(`truncated \\${whole[1] ?? ''}${'X'.repeat(width)} escape`);
          return String.fromCodePoint(code);
        }
        if (named !== undefined) this.#fail('\\N{…} escapes are not supported in templates');
        if (char === undefined) return '';
        return SIMPLE_ESCAPES[char] ?? whole;
      },
    );
  }
}

const SIMPLE_ESCAPES: Record<string, string> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
