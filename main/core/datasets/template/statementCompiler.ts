/** Turns statements into closures. */
import type { Body, Expression, Signature, Statement, Target } from './ast.ts';
import { TemplateError, typeError, valueError } from './errors.ts';
import { FILTER_OPERAND, compile, compileCallParts } from './expressionCompiler.ts';
import type { Evaluate } from './expressionCompiler.ts';
import { Loop } from './loop.ts';
import { iterate } from './operators.ts';
import { Scope } from './runtime.ts';
import type { Runtime } from './runtime.ts';
import { Callable, Dict, Namespace, Tuple, Undefined, isTrue, typeName } from './values.ts';
import type { Value } from './values.ts';

/** How a statement ended: as usual, by break, by continue. */
type Flow = 0 | 1 | 2;
const NEXT: Flow = 0;
const BREAK: Flow = 1;
const CONTINUE: Flow = 2;

export type Execute = (scope: Scope, runtime: Runtime) => Flow;

/** A body whose errors know the line of the statement they came from. */
export function compileBody(body: Body): Execute {
  const steps = body.map(compileStatement);
  return (scope, runtime) => {
    let at = 0;
    try {
      for (; at < steps.length; at++) {
        const flow = steps[at]?.(scope, runtime) ?? NEXT;
        if (flow !== NEXT) return flow;
      }
    } catch (error) {
      if (error instanceof TemplateError) error.line ??= body[at]?.line;
      throw error;
    }
    return NEXT;
  };
}

function compileStatement(node: Statement): Execute {
  switch (node.type) {
    case 'data':
      return (_scope, runtime) => {
        runtime.printText(node.text);
        return NEXT;
      };
    case 'print': {
      const value = compile(node.value);
      return (scope, runtime) => {
        runtime.print(value(scope, runtime));
        return NEXT;
      };
    }
    case 'if':
      return compileIf(node.branches, node.otherwise);
    case 'for':
      return compileFor(node);
    case 'set': {
      const value = compile(node.value);
      const assign = compileTarget(node.target);
      return (scope, runtime) => {
        assign(scope, value(scope, runtime));
        return NEXT;
      };
    }
    case 'setBlock': {
      const captured = compileCaptured(node.body, node.filter);
      const assign = compileTarget(node.target);
      return (scope, runtime) => {
        assign(scope, captured(scope, runtime));
        return NEXT;
      };
    }
    case 'filterBlock': {
      const captured = compileCaptured(node.body, node.filter);
      return (scope, runtime) => {
        runtime.print(captured(scope, runtime));
        return NEXT;
      };
    }
    case 'with':
      return compileWith(node.bindings, node.body);
    case 'macro': {
      const define = compileMacro(node.name, node.signature, node.body);
      return (scope, runtime) => {
        scope.set(node.name, define(scope, runtime));
        return NEXT;
      };
    }
    case 'callBlock':
      return compileCallBlock(node);
    case 'generation':
      return compileGeneration(node.body);
    case 'block': {
      const body = compileBody(node.body);
      return (scope, runtime) => body(new Scope(scope), runtime);
    }
    case 'break':
      return () => BREAK;
    case 'continue':
      return () => CONTINUE;
  }
}

function compileIf(branches: readonly (readonly [Expression, Body])[], otherwiseNode: Body): Execute {
  const compiled = branches.map(([test, body]) => [compile(test), compileBody(body)] as const);
  const otherwise = compileBody(otherwiseNode);
  return (scope, runtime) => {
    for (const [test, body] of compiled) {
      if (isTrue(test(scope, runtime))) return body(scope, runtime);
    }
    return otherwise(scope, runtime);
  };
}

function compileFor(node: Statement & { type: 'for' }): Execute {
  const iterable = compile(node.iterable);
  const assign = compileTarget(node.target);
  const test = node.test && compile(node.test);
  const body = compileBody(node.body);
  const otherwise = compileBody(node.otherwise);

  const run = (source: Value, depth0: number, scope: Scope, runtime: Runtime): void => {
    const items = test ? kept(source, test, assign, scope, runtime) : iterate(source);
    const recurse = (inner: Value, depth: number): Value =>
      runtime.capture(() => run(inner, depth, scope, runtime));
    const loop = new Loop(items, depth0, node.isRecursive ? recurse : undefined);
    let hasEnded = false;
    for (const item of items) {
      const round = new Scope(scope);
      round.set('loop', loop);
      const saved = runtime.enterItem(item);
      assign(round, item);
      const flow = body(round, runtime);
      runtime.leave(saved);
      if (flow === BREAK) break;
      hasEnded ||= flow === NEXT;
      loop.index0++;
    }
    // Jinja's else is for a loop of which no round came to its end, for want of items or by break and continue.
    if (!hasEnded) otherwise(new Scope(scope), runtime);
  };
  return (scope, runtime) => {
    run(iterable(scope, runtime), 0, scope, runtime);
    return NEXT;
  };
}

function kept(source: Value, test: Evaluate, assign: Assign, scope: Scope, runtime: Runtime): Value[] {
  return iterate(source).filter((item) => {
    const inner = new Scope(scope);
    assign(inner, item);
    return isTrue(test(inner, runtime));
  });
}

type Assign = (scope: Scope, value: Value) => void;

function compileTarget(target: Target): Assign {
  if (target.type === 'name') return (scope, value) => scope.set(target.name, value);
  if (target.type === 'namespace') {
    return (scope, value) => {
      const space = scope.lookup(target.name);
      if (!(space instanceof Namespace)) {
        throw new TemplateError('TemplateRuntimeError', 'cannot assign attribute on non-namespace object');
      }
      space.attributes.set(target.attribute, value);
    };
  }
  const parts = target.items.map(compileTarget);
  return (scope, value) => {
    const items = unpack(value, parts.length);
    parts.forEach((assign, i) => assign(scope, items[i] ?? null));
  };
}

function unpack(value: Value, size: number): readonly Value[] {
  if (value === null || (typeof value !== 'object' && typeof value !== 'string')) {
    throw typeError(`cannot unpack non-iterable ${typeName(value)} object`);
  }
  const items = iterate(value);
  if (items.length > size) throw valueError(`too many values to unpack (expected ${size})`);
  if (items.length < size)
    throw valueError(`not enough values to unpack (expected ${size}, got ${items.length})`);
  return items;
}

function compileCaptured(bodyNode: Body, filterNode: Expression | undefined): Evaluate {
  const body = compileBody(bodyNode);
  const filter = filterNode && compile(filterNode);
  return (scope, runtime) => {
    const inner = new Scope(scope);
    const text = runtime.capture(() => body(inner, runtime));
    if (!filter) return text;
    inner.set(FILTER_OPERAND, text);
    return filter(inner, runtime);
  };
}

function compileWith(bindings: readonly (readonly [Target, Expression])[], bodyNode: Body): Execute {
  const compiled = bindings.map(([target, value]) => [compileTarget(target), compile(value)] as const);
  const body = compileBody(bodyNode);
  return (scope, runtime) => {
    const inner = new Scope(scope);
    for (const [assign, value] of compiled) assign(inner, value(scope, runtime));
    return body(inner, runtime);
  };
}

/** A macro, bound to the scope that defines it. */
function compileMacro(
  name: string,
  signature: Signature,
  bodyNode: Body,
): (scope: Scope, runtime: Runtime) => Callable {
  const body = compileBody(bodyNode);
  const defaults = signature.defaults.map(compile);
  const firstDefault = signature.names.length - defaults.length;
  const special = specialNames(bodyNode);
  return (scope, runtime) =>
    new Macro(
      name,
      (args, kwargs) => {
        const inner = new Scope(scope);
        const rest = new Map(kwargs);
        signature.names.forEach((parameter, i) => {
          const given = i < args.length ? args[i] : rest.get(parameter);
          if (i >= args.length) rest.delete(parameter);
          const fallback = defaults[i - firstDefault];
          if (given !== undefined) inner.set(parameter, given);
          else if (fallback) inner.set(parameter, fallback(inner, runtime));
          else inner.set(parameter, new Undefined(`parameter '${parameter}' was not provided`));
        });
        bindSpecial(name, inner, special, args.slice(signature.names.length), rest, signature.names);
        const saved = runtime.enterArguments(args);
        const text = runtime.capture(() => body(inner, runtime));
        runtime.leave(saved);
        return text;
      },
      'Macro',
    );
}

class Macro extends Callable {
  override toRepr(): string {
    return this.name === CALLER ? '<Macro anonymous>' : `<Macro '${this.name}'>`;
  }
}

const CALLER = 'caller';

type SpecialNames = ReadonlySet<string>;

/** `caller`, `kwargs`, `varargs`, where the body reads them. */
function specialNames(body: Body): SpecialNames {
  const names = new Set<string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    if (typeof node !== 'object' || node === null) return;
    if ('type' in node && node.type === 'name' && 'name' in node) names.add(String(node.name));
    Object.values(node).forEach((child) => {
      if (typeof child === 'object') visit(child);
    });
  };
  visit(body);
  return new Set(['caller', 'kwargs', 'varargs'].filter((name) => names.has(name)));
}

function bindSpecial(
  name: string,
  scope: Scope,
  special: SpecialNames,
  extra: Value[],
  rest: Map<string, Value>,
  parameters: readonly string[],
): void {
  if (special.has('caller') && !parameters.includes('caller')) {
    scope.set('caller', rest.get('caller') ?? new Undefined('No caller defined'));
    rest.delete('caller');
  }
  if (special.has('kwargs')) scope.set('kwargs', Dict.of(rest));
  else if (rest.size > 0) {
    throw typeError(`macro '${name}' takes no keyword argument '${[...rest.keys()][0] ?? ''}'`);
  }
  if (special.has('varargs')) scope.set('varargs', new Tuple(extra));
  else if (extra.length > 0)
    throw typeError(`macro '${name}' takes not more than ${parameters.length} argument(s)`);
}

function compileCallBlock(node: Statement & { type: 'callBlock' }): Execute {
  if (node.call.type !== 'call') throw typeError('a call block needs a call');
  const caller = compileMacro(CALLER, node.signature, node.body);
  const { evaluate } = compileCallParts(node.call.callee, node.call.arguments);
  return (scope, runtime) => {
    runtime.print(evaluate(scope, runtime, caller(scope, runtime)));
    return NEXT;
  };
}

function compileGeneration(bodyNode: Body): Execute {
  const body = compileBody(bodyNode);
  return (scope, runtime) => {
    const saved = runtime.enterGeneration();
    runtime.print(runtime.capture(() => body(new Scope(scope), runtime)));
    runtime.leave(saved);
    return NEXT;
  };
}
