/** Jinja2's statements, with loop controls and transformers' `generation` tag. Source: jinja2/parser.py 3.1. */
import type { Body, Expression, Signature, Statement, Target } from './ast.ts';
import { TemplateError } from './errors.ts';
import { ExpressionParser } from './expressionParser.ts';
import { tokenize } from './lexer.ts';

/** Parses a template. Throws TemplateError (TemplateSyntaxError) with its line. */
export function parseTemplate(source: string): Body {
  const parser = new StatementParser(new ExpressionParser(tokenize(source)));
  return parser.body();
}

const NEEDS_LOADER = ['include', 'import', 'from', 'extends'];

class StatementParser {
  readonly #p: ExpressionParser;
  #loopDepth = 0;

  constructor(parser: ExpressionParser) {
    this.#p = parser;
  }

  /** Statements up to a tag named in `ends`, which stays the current token; without it, to the end. */
  body(...ends: string[]): Statement[] {
    const p = this.#p;
    const body: Statement[] = [];
    for (;;) {
      const { line, type } = p.current;
      if (type === 'data') {
        body.push({ type: 'data', text: p.advance().value, line });
      } else if (type === 'variableBegin') {
        p.advance();
        body.push({ type: 'print', value: p.tuple(), line });
        p.expect('variableEnd');
      } else if (type === 'blockBegin') {
        p.advance();
        if (p.isName(...ends)) return body;
        body.push(...this.#statement());
        p.expect('blockEnd');
      } else {
        if (ends.length > 0) {
          p.fail(
            `Unexpected end of template. Jinja was looking for the following tags: '${ends.join("' or '")}'.`,
          );
        }
        return body;
      }
    }
  }

  #statement(): Statement[] {
    const { value: name, line } = this.#p.expect('name');
    switch (name) {
      case 'if':
        return [this.#if(line)];
      case 'for':
        return [this.#for(line)];
      case 'set':
        return [this.#set(line)];
      case 'with':
        return [this.#with(line)];
      case 'autoescape':
        return [this.#autoescape(line)];
      case 'macro':
        return [this.#macro(line)];
      case 'call':
        return [this.#callBlock(line)];
      case 'filter':
        return [
          {
            type: 'filterBlock',
            filter: this.#filters(this.#p.filter(undefined)),
            body: this.#block('endfilter'),
            line,
          },
        ];
      case 'generation':
        return [{ type: 'generation', body: this.#block('endgeneration'), line }];
      case 'block':
        return [this.#namedBlock(line)];
      case 'print':
        return this.#print(line);
      case 'break':
      case 'continue':
        if (this.#loopDepth === 0) this.#p.fail(`'${name}' outside loop`, line);
        return [{ type: name, line }];
    }
    if (NEEDS_LOADER.includes(name)) {
      throw new TemplateError(
        'TypeError',
        `'${name}' needs other template files, and a chat template has none`,
        line,
      );
    }
    return this.#p.fail(`Encountered unknown tag '${name}'.`, line);
  }

  /** The body of a tag that ends with `end`, both tags' delimiters taken. */
  #block(...ends: string[]): Statement[] {
    this.#p.take('operator', ':');
    this.#p.expect('blockEnd');
    const body = this.body(...ends);
    if (ends.length === 1) this.#p.advance();
    return body;
  }

  #if(line: number): Statement {
    const branches: [Expression, Body][] = [];
    for (;;) {
      const test = this.#p.tuple({ condition: false });
      branches.push([test, this.#block('elif', 'else', 'endif')]);
      const { value } = this.#p.advance();
      if (value === 'elif') continue;
      const otherwise = value === 'else' ? this.#block('endif') : [];
      return { type: 'if', branches, otherwise, line };
    }
  }

  #for(line: number): Statement {
    const p = this.#p;
    const target = p.target({ end: 'in' });
    if (targetNames(target).includes('loop'))
      p.fail("Can't assign to special loop variable in for-loop target", line);
    p.expect('name', 'in');
    const iterable = p.tuple({ condition: false, end: 'recursive' });
    const test = p.take('name', 'if') ? p.expression() : undefined;
    const isRecursive = p.take('name', 'recursive');
    this.#loopDepth++;
    const body = this.#block('endfor', 'else');
    this.#loopDepth--;
    const otherwise = p.advance().value === 'else' ? this.#block('endfor') : [];
    return { type: 'for', target, iterable, test, isRecursive, body, otherwise, line };
  }

  #set(line: number): Statement {
    const p = this.#p;
    const target = p.target({ namespace: true });
    if (p.take('operator', '=')) return { type: 'set', target, value: p.tuple(), line };
    let filter: Expression | undefined;
    if (p.take('operator', '|')) filter = this.#filters(p.filter(undefined));
    return { type: 'setBlock', target, filter, body: this.#block('endset'), line };
  }

  #filters(first: Expression): Expression {
    let filter = first;
    while (this.#p.take('operator', '|')) filter = this.#p.filter(filter);
    return filter;
  }

  #with(line: number): Statement {
    const p = this.#p;
    const bindings: [Target, Expression][] = [];
    while (!p.is('blockEnd')) {
      if (bindings.length > 0) p.expect('operator', ',');
      const target = p.target();
      p.expect('operator', '=');
      bindings.push([target, p.expression()]);
    }
    return { type: 'with', bindings, body: this.#block('endwith'), line };
  }

  /** Off is what a chat template has anyway; on, it would write `&lt;` where somebody wrote `<`. */
  #autoescape(line: number): Statement {
    const value = this.#p.expression();
    if (value.type !== 'constant' || value.value !== false)
      throw new TemplateError('TypeError', "'autoescape' can only be false here: a chat is no HTML", line);
    return { type: 'with', bindings: [], body: this.#block('endautoescape'), line };
  }

  #signature(): Signature {
    const p = this.#p;
    const names: string[] = [];
    const defaults: Expression[] = [];
    p.expect('operator', '(');
    while (!p.isOperator(')')) {
      if (names.length > 0) p.expect('operator', ',');
      names.push(p.expect('name').value);
      if (p.take('operator', '=')) defaults.push(p.expression());
      else if (defaults.length > 0) p.fail('non-default argument follows default argument');
    }
    p.advance();
    return { names, defaults };
  }

  #macro(line: number): Statement {
    const name = this.#p.expect('name').value;
    const signature = this.#signature();
    return { type: 'macro', name, signature, body: this.#outsideLoop('endmacro'), line };
  }

  #callBlock(line: number): Statement {
    const signature = this.#p.isOperator('(') ? this.#signature() : { names: [], defaults: [] };
    const call = this.#p.expression();
    if (call.type !== 'call') this.#p.fail('expected call', line);
    return { type: 'callBlock', signature, call, body: this.#outsideLoop('endcall'), line };
  }

  #outsideLoop(end: string): Statement[] {
    const depth = this.#loopDepth;
    this.#loopDepth = 0;
    const body = this.#block(end);
    this.#loopDepth = depth;
    return body;
  }

  #namedBlock(line: number): Statement {
    const name = this.#p.expect('name').value;
    this.#p.take('name', 'scoped');
    this.#p.take('name', 'required');
    const body = this.#block('endblock');
    this.#p.take('name', name);
    return { type: 'block', body, line };
  }

  #print(line: number): Statement[] {
    const prints: Statement[] = [];
    while (!this.#p.is('blockEnd')) {
      if (prints.length > 0) this.#p.expect('operator', ',');
      prints.push({ type: 'print', value: this.#p.expression(), line });
    }
    return prints;
  }
}

export function targetNames(target: Target): string[] {
  if (target.type === 'tuple') return target.items.flatMap(targetNames);
  return target.type === 'name' ? [target.name] : [];
}
