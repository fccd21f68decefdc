/** Jinja2's expression grammar. Source: jinja2/parser.py 3.1. */
import type { BinaryOperator, CallArguments, CompareOperator, Expression, Target } from './ast.ts';
import { TemplateError } from './errors.ts';
import type { Token, TokenType } from './lexer.ts';
import { Float, normalInt } from './values.ts';

const NO_ARGUMENTS: CallArguments = { positional: [], named: [], spread: undefined, spreadNamed: undefined };
const CONSTANTS = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
]);
const TEST_ARGUMENT_TYPES: readonly TokenType[] = ['name', 'string', 'integer', 'float'];

export class ExpressionParser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#at] ?? { type: 'end', value: '', line: 0 };
  }

  get next(): Token {
    return this.#tokens[this.#at + 1] ?? this.current;
  }

  advance(): Token {
    const token = this.current;
    if (token.type !== 'end') this.#at++;
    return token;
  }

  fail(message: string, line = this.current.line): never {
    throw new TemplateError('TemplateSyntaxError', message, line);
  }

  is(type: TokenType, value?: string): boolean {
    return this.current.type === type && (value === undefined || this.current.value === value);
  }

  isOperator(value: string): boolean {
    return this.is('operator', value);
  }

  isName(...values: string[]): boolean {
    return this.current.type === 'name' && values.includes(this.current.value);
  }

  take(type: TokenType, value?: string): boolean {
    if (!this.is(type, value)) return false;
    this.advance();
    return true;
  }

  expect(type: TokenType, value?: string): Token {
    if (!this.is(type, value)) {
      this.fail(`expected token '${value ?? describe(type)}', got '${describeToken(this.current)}'`);
    }
    return this.advance();
  }

  /** One expression, or a tuple without parentheses. */
  tuple(options: { condition?: boolean; end?: string; inParentheses?: boolean } = {}): Expression {
    const { line } = this.current;
    const items: Expression[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) this.expect('operator', ',');
      if (this.#isTupleEnd(options.end)) break;
      items.push(options.condition === false ? this.#or() : this.expression());
      if (!this.isOperator(',')) break;
      isTuple = true;
    }
    const [first] = items;
    if (!isTuple && first) return first;
    if (!isTuple && !options.inParentheses) {
      this.fail(`Expected an expression, got '${describeToken(this.current)}'`);
    }
    return { type: 'tuple', items, line };
  }

  #isTupleEnd(end: string | undefined): boolean {
    return (
      this.is('variableEnd') ||
      this.is('blockEnd') ||
      this.isOperator(')') ||
      (end !== undefined && this.isName(end))
    );
  }

  expression(): Expression {
    const { line } = this.current;
    let then = this.#or();
    while (this.take('name', 'if')) {
      const test = this.#or();
      const otherwise = this.take('name', 'else') ? this.expression() : undefined;
      then = { type: 'condition', test, then, otherwise, line };
    }
    return then;
  }

  #or(): Expression {
    let left = this.#and();
    while (this.isName('or')) {
      const { line } = this.advance();
      left = { type: 'or', left, right: this.#and(), line };
    }
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.isName('and')) {
      const { line } = this.advance();
      left = { type: 'and', left, right: this.#not(), line };
    }
    return left;
  }

  #not(): Expression {
    if (!this.isName('not')) return this.#compare();
    const { line } = this.advance();
    return { type: 'not', operand: this.#not(), line };
  }

  #compare(): Expression {
    const { line } = this.current;
    const first = this.#sum();
    const rest: [CompareOperator, Expression][] = [];
    for (;;) {
      const operator = this.#compareOperator();
      if (operator === undefined) break;
      rest.push([operator, this.#sum()]);
    }
    return rest.length === 0 ? first : { type: 'compare', first, rest, line };
  }

  #compareOperator(): CompareOperator | undefined {
    const { type, value } = this.current;
    if (type === 'operator' && /^(?:==|!=|<=?|>=?)$/.test(value))
      return this.advance().value as CompareOperator;
    if (this.take('name', 'in')) return 'in';
    if (this.isName('not') && this.next.type === 'name' && this.next.value === 'in') {
      this.advance();
      this.advance();
      return 'not in';
    }
    return undefined;
  }

  #binary(operators: readonly BinaryOperator[], operand: () => Expression): Expression {
    let left = operand();
    for (;;) {
      const { type, value, line } = this.current;
      const operator = operators.find((o) => type === 'operator' && o === value);
      if (operator === undefined) return left;
      this.advance();
      left = { type: 'binary', operator, left, right: operand(), line };
    }
  }

  #sum(): Expression {
    return this.#binary(['+', '-'], () => this.#concat());
  }

  #concat(): Expression {
    const { line } = this.current;
    const items = [this.#product()];
    while (this.take('operator', '~')) items.push(this.#product());
    const [first] = items;
    return items.length === 1 && first ? first : { type: 'concat', items, line };
  }

  #product(): Expression {
    return this.#binary(['*', '/', '//', '%'], () => this.#power());
  }

  #power(): Expression {
    return this.#binary(['**'], () => this.#unary(true));
  }

  #unary(withFilter: boolean): Expression {
    const { line } = this.current;
    let node: Expression;
    if (this.take('operator', '-')) node = { type: 'negative', operand: this.#unary(false), line };
    else if (this.take('operator', '+')) node = { type: 'positive', operand: this.#unary(false), line };
    else node = this.#primary();
    node = this.#postfix(node);
    return withFilter ? this.#filtersAndTests(node) : node;
  }

  #primary(): Expression {
    const token = this.advance();
    const { line } = token;
    switch (token.type) {
      case 'name': {
        const constant = CONSTANTS.get(token.value);
        if (constant !== undefined) return { type: 'constant', value: constant, line };
        return { type: 'name', name: token.value, line };
      }
      case 'string': {
        let value = token.value;
        while (this.is('string')) value += this.advance().value;
        return { type: 'constant', value, line };
      }
      case 'integer':
        return { type: 'constant', value: normalInt(BigInt(token.value)), line };
      case 'float':
        return { type: 'constant', value: new Float(Number(token.value)), line };
      case 'operator':
        if (token.value === '(') {
          const inner = this.tuple({ inParentheses: true });
          this.expect('operator', ')');
          return inner;
        }
        if (token.value === '[')
          return { type: 'list', items: this.#items(']', () => this.expression()), line };
        if (token.value === '{')
          return { type: 'dict', entries: this.#items('}', () => this.#entry()), line };
    }
    return this.fail(`unexpected '${describeToken(token)}'`, line);
  }

  #items<T>(closer: string, parse: () => T): T[] {
    const items: T[] = [];
    while (!this.isOperator(closer)) {
      if (items.length > 0) this.expect('operator', ',');
      if (this.isOperator(closer)) break;
      items.push(parse());
    }
    this.expect('operator', closer);
    return items;
  }

  #entry(): [Expression, Expression] {
    const key = this.expression();
    this.expect('operator', ':');
    return [key, this.expression()];
  }

  #postfix(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.isOperator('.') || this.isOperator('[')) node = this.#subscript(node);
      else if (this.isOperator('(')) node = this.#call(node);
      else return node;
    }
  }

  #filtersAndTests(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.isOperator('|')) {
        this.advance();
        node = this.filter(node);
      } else if (this.isName('is')) node = this.#test(node);
      else if (this.isOperator('(')) node = this.#call(node);
      else return node;
    }
  }

  #call(callee: Expression): Expression {
    const { line } = this.current;
    return { type: 'call', callee, arguments: this.#arguments(), line };
  }

  #subscript(object: Expression): Expression {
    const { line, value } = this.advance();
    if (value === '.') {
      const attribute = this.advance();
      if (attribute.type === 'name') return { type: 'attribute', object, name: attribute.value, line };
      if (attribute.type !== 'integer') this.fail('expected name or number', attribute.line);
      return { type: 'item', object, key: { type: 'constant', value: Number(attribute.value), line }, line };
    }
    const keys: Expression[] = [];
    while (!this.isOperator(']')) {
      if (keys.length > 0) this.expect('operator', ',');
      keys.push(this.#subscriptKey());
    }
    this.expect('operator', ']');
    const [first] = keys;
    return {
      type: 'item',
      object,
      key: keys.length === 1 && first ? first : { type: 'tuple', items: keys, line },
      line,
    };
  }

  #subscriptKey(): Expression {
    const { line } = this.current;
    const start = this.isOperator(':') ? undefined : this.expression();
    if (start && !this.isOperator(':')) return start;
    this.advance();
    const part = (): Expression | undefined =>
      this.isOperator(':') || this.isOperator(']') || this.isOperator(',') ? undefined : this.expression();
    const stop = part();
    const step = this.take('operator', ':') ? part() : undefined;
    return { type: 'slice', start, stop, step, line };
  }

  #arguments(): CallArguments {
    const { line } = this.expect('operator', '(');
    const positional: Expression[] = [];
    const named: [string, Expression][] = [];
    let spread: Expression | undefined;
    let spreadNamed: Expression | undefined;
    const ensure = (ok: boolean): void => {
      if (!ok) this.fail('invalid syntax for function call expression', line);
    };
    for (let isFirst = true; !this.isOperator(')'); isFirst = false) {
      if (!isFirst) this.expect('operator', ',');
      if (this.isOperator(')')) break;
      if (this.take('operator', '*')) {
        ensure(!spread && !spreadNamed);
        spread = this.expression();
      } else if (this.take('operator', '**')) {
        ensure(!spreadNamed);
        spreadNamed = this.expression();
      } else if (this.is('name') && this.next.type === 'operator' && this.next.value === '=') {
        ensure(!spreadNamed);
        const name = this.advance().value;
        this.advance();
        named.push([name, this.expression()]);
      } else {
        ensure(!spread && !spreadNamed && named.length === 0);
        positional.push(this.expression());
      }
    }
    this.expect('operator', ')');
    return { positional, named, spread, spreadNamed };
  }

  #dottedName(): string {
    let name = this.expect('name').value;
    while (this.take('operator', '.')) name += `.${this.expect('name').value}`;
    return name;
  }

  /** One filter, the `|` already taken. `operand` is absent in filter and set blocks. */
  filter(operand: Expression | undefined): Expression {
    const { line } = this.current;
    const name = this.#dottedName();
    const args = this.isOperator('(') ? this.#arguments() : NO_ARGUMENTS;
    return { type: 'filter', operand, name, arguments: args, line };
  }

  #test(operand: Expression): Expression {
    const { line } = this.advance();
    const isNegated = this.take('name', 'not');
    const name = this.#dottedName();
    const test: Expression = { type: 'test', operand, name, arguments: this.#testArguments(), line };
    return isNegated ? { type: 'not', operand: test, line } : test;
  }

  #testArguments(): CallArguments {
    if (this.isOperator('(')) return this.#arguments();
    const isArgument =
      (TEST_ARGUMENT_TYPES.includes(this.current.type) || this.isOperator('[') || this.isOperator('{')) &&
      !this.isName('else', 'or', 'and');
    if (!isArgument) return NO_ARGUMENTS;
    if (this.isName('is')) this.fail('You cannot chain multiple tests with is');
    return { ...NO_ARGUMENTS, positional: [this.#postfix(this.#primary())] };
  }

  /** What `set`, `for` and `with` assign to. */
  target(options: { end?: string; namespace?: boolean } = {}): Target {
    const items: Target[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) this.expect('operator', ',');
      if (this.#isTupleEnd(options.end)) break;
      items.push(this.#simpleTarget(options.namespace === true));
      if (!this.isOperator(',')) break;
      isTuple = true;
    }
    const [first] = items;
    if (!isTuple && first) return first;
    if (!isTuple) this.fail(`Expected an expression, got '${describeToken(this.current)}'`);
    return { type: 'tuple', items };
  }

  #simpleTarget(withNamespace: boolean): Target {
    if (this.take('operator', '(')) {
      const inner = this.target({ namespace: withNamespace });
      this.expect('operator', ')');
      return inner;
    }
    const { value, line, type } = this.advance();
    if (type !== 'name') this.fail(`can't assign to '${value}'`, line);
    if (CONSTANTS.has(value)) this.fail("can't assign to 'const'", line);
    if (withNamespace && this.take('operator', '.')) {
      return { type: 'namespace', name: value, attribute: this.expect('name').value };
    }
    return { type: 'name', name: value };
  }
}

const DESCRIPTIONS: Partial<Record<TokenType, string>> = {
  blockBegin: 'begin of statement block',
  blockEnd: 'end of statement block',
  variableBegin: 'begin of print statement',
  variableEnd: 'end of print statement',
  data: 'template data / text',
  end: 'end of template',
};

function describe(type: TokenType): string {
  return DESCRIPTIONS[type] ?? type;
}

export function describeToken(token: Token): string {
  return token.type === 'name' || token.type === 'operator' ? token.value : describe(token.type);
}
