import { TesseraError } from '../../../contract/errors.ts';

export type Comparison = ':' | '<' | '<=' | '>' | '>=' | '!=';

/** A search as a tree. `at` is where a part begins in the text, counted from 0. */
export type SearchNode =
  | { kind: 'all' | 'any'; parts: SearchNode[] }
  | { kind: 'not'; part: SearchNode }
  | { kind: 'text'; text: string; at: number }
  | { kind: 'field'; field: string; comparison: Comparison; value: string; isQuoted: boolean; at: number };

/** @throws {TesseraError} `badSearch`: says what is wrong and marks the place */
export function searchError(query: string, at: number, problem: string, hint?: string): TesseraError {
  const place = at >= query.length ? 'at the end' : `at character ${String(at + 1)}`;
  return new TesseraError('badSearch', `${problem} ${place}\n${query}\n${' '.repeat(at)}^`, hint);
}

const fieldPattern = /[A-Za-z_][\w.-]*(?=(?::|<=?|>=?|!=|=))/y;
const comparisonPattern = /:|<=|<|>=|>|!=|=/y;
const barePattern = /[^\s()"]+/y;

/**
 * Terms side by side must all hold; `OR` between two means either, and binds less; `-` before a term turns it round;
 * parentheses group. A term is a word, a "quoted phrase", or field, comparison and value: `lr<1e-5`, `strategy:bfd`,
 * `name:"night shift"`, `dataset:chats*`, `started>7d`.
 * @throws {TesseraError} `badSearch`
 */
export function parseSearch(query: string): SearchNode {
  const parser = new Parser(query);
  return parser.whole();
}

class Parser {
  private readonly query: string;
  private at = 0;

  constructor(query: string) {
    this.query = query;
  }

  whole(): SearchNode {
    const node = this.either();
    if (this.peek() === ')') throw this.error(this.at, 'a parenthesis is closed that was never opened');
    return node;
  }

  private either(): SearchNode {
    const parts = [this.every()];
    for (let word = this.at; this.takeWord('OR'); word = this.at) {
      const isFirst = isEmpty(parts.at(-1));
      const next = this.every();
      if (isFirst || isEmpty(next)) throw this.error(word, 'OR needs a term on either side');
      parts.push(next);
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'any', parts };
  }

  private every(): SearchNode {
    const parts: SearchNode[] = [];
    for (;;) {
      const next = this.peek();
      if (next === '' || next === ')' || this.isWord('OR')) break;
      parts.push(this.term());
      // AND says what side by side says.
      if (this.takeWord('AND') && ['', ')'].includes(this.peek()))
        throw this.error(this.at, 'AND needs a term on either side');
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'all', parts };
  }

  private term(): SearchNode {
    const begin = this.at;
    if (this.query[begin] === '-' && /[^\s)]/.test(this.query[begin + 1] ?? '')) {
      this.at += 1;
      return { kind: 'not', part: this.term() };
    }
    if (this.query[begin] === '(') return this.group();
    const field = this.match(fieldPattern);
    if (field === undefined) return { kind: 'text', text: this.value(begin).text, at: begin };
    const sign = this.match(comparisonPattern) ?? ':';
    const comparison = (sign === '=' ? ':' : sign) as Comparison;
    const valueAt = this.at;
    if (/^(\s|\)|$)/.test(this.query.slice(valueAt)))
      throw this.error(
        valueAt,
        `a value is missing after '${field}${sign}'`,
        `For example ${field}${sign}${sign === ':' ? 'word' : '1e-5'}.`,
      );
    const { text, isQuoted } = this.value(valueAt);
    return { kind: 'field', field, comparison, value: text, isQuoted, at: begin };
  }

  private group(): SearchNode {
    const begin = this.at;
    this.at += 1;
    const node = this.either();
    if (this.peek() !== ')') throw this.error(begin, 'a parenthesis is not closed, opened');
    this.at += 1;
    if (isEmpty(node)) throw this.error(begin, 'nothing stands in the parentheses');
    return node;
  }

  private value(begin: number): { text: string; isQuoted: boolean } {
    if (this.query[this.at] === '"') {
      const end = this.query.indexOf('"', this.at + 1);
      if (end < 0) throw this.error(this.at, 'a quotation mark is not closed, opened');
      const text = this.query.slice(this.at + 1, end);
      this.at = end + 1;
      if (text === '') throw this.error(begin, 'nothing stands in the quotation marks');
      return { text, isQuoted: true };
    }
    return { text: this.match(barePattern) ?? '', isQuoted: false };
  }

  /** The next character that is no space; empty at the end. */
  private peek(): string {
    while (/\s/.test(this.query[this.at] ?? '')) this.at += 1;
    return this.query[this.at] ?? '';
  }

  private isWord(word: string): boolean {
    this.peek();
    return (
      this.query.startsWith(word, this.at) && /^(\s|\(|\)|$)/.test(this.query.slice(this.at + word.length))
    );
  }

  private takeWord(word: string): boolean {
    if (!this.isWord(word)) return false;
    this.at += word.length;
    return true;
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.query)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  private error(at: number, problem: string, hint?: string): TesseraError {
    return searchError(this.query, at, problem, hint);
  }
}

const isEmpty = (node: SearchNode | undefined) =>
  node !== undefined && 'parts' in node && node.parts.length === 0;
