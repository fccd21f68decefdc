/** Turns expressions into closures. */
import {
  call,
  getAttribute,
  getSubscript,
  isDictAttribute,
  spreadArguments,
  spreadNamed,
} from './attributes.ts';
import { NO_KWARGS } from './arguments.ts';
import type { CallArguments, Expression } from './ast.ts';
import { findFilter } from './filters.ts';
import { binary, compare, concatAll, failUndefined, getSlice, negate, positive } from './operators.ts';
import type { Runtime, Scope } from './runtime.ts';
import { STR_METHODS } from './stringMethods.ts';
import { Tagged, isMarkup, isStr } from './taggedString.ts';
import { runTest } from './tests.ts';
import { Dict, Tuple, Undefined, isTrue } from './values.ts';
import type { Kwargs, Value } from './values.ts';

export type Evaluate = (scope: Scope, runtime: Runtime) => Value;

/** An expression whose value may be printed: its literal strings carry the turn they are evaluated in. */
export function compile(node: Expression): Evaluate {
  switch (node.type) {
    case 'constant':
      return typeof node.value === 'string' ? compileLiteral(node.value) : constant(node.value);
    case 'name':
      return compileName(node.name);
    case 'list':
    case 'tuple':
      return compileItems(node.type, node.items);
    case 'dict':
      return compileDict(node.entries);
    case 'condition':
      return compileCondition(node);
    case 'and':
    case 'or':
      return compileLogic(node.type, compile(node.left), compile(node.right));
    case 'not': {
      const operand = compileQuiet(node.operand);
      return (scope, runtime) => !isTrue(operand(scope, runtime));
    }
    case 'negative':
    case 'positive': {
      const operand = compile(node.operand);
      const apply = node.type === 'negative' ? negate : positive;
      return (scope, runtime) => apply(operand(scope, runtime));
    }
    case 'binary': {
      const { operator } = node;
      if (operator === '+') return compileSum(node);
      const left = compile(node.left);
      const right = compile(node.right);
      return (scope, runtime) => binary(operator, left(scope, runtime), right(scope, runtime));
    }
    case 'concat': {
      const items = node.items.map(compile);
      return (scope, runtime) => concatAll(items.map((item) => item(scope, runtime)));
    }
    case 'compare':
      return compileCompare(node);
    case 'attribute': {
      const object = compile(node.object);
      const { name } = node;
      if (isDictAttribute(name)) return (scope, runtime) => getAttribute(object(scope, runtime), name);
      return (scope, runtime) => {
        const value = object(scope, runtime);
        const item = value instanceof Dict ? value.get(name) : undefined;
        return item === undefined ? getAttribute(value, name) : item;
      };
    }
    case 'item':
      return compileSubscript(node.object, node.key);
    case 'slice':
      return () => failUndefined(new Undefined('a slice stands alone only inside [ ]'));
    case 'call':
      return compileCall(node.callee, node.arguments);
    case 'filter':
      return compileFilter(node);
    case 'test': {
      const operand = compileQuiet(node.operand);
      const args = compileArguments(node.arguments, compileQuiet);
      const { name } = node;
      return (scope, runtime) => runTest(name, operand(scope, runtime), args(scope, runtime).positional);
    }
  }
}

/** An expression that is only looked at: a literal string needs no origin. */
function compileQuiet(node: Expression): Evaluate {
  return node.type === 'constant' ? constant(node.value) : compile(node);
}

function constant(value: Value): Evaluate {
  return () => value;
}

function compileLiteral(text: string): Evaluate {
  let last = new Tagged(text, [text.length, 0]);
  return (_scope, runtime) => {
    const from = runtime.literalOrigin;
    if (from === 0 || text === '') return text;
    if (last.runs[1] !== from) last = new Tagged(text, [text.length, from]);
    return last;
  };
}

/** `a + b + c`, joined at once where all of them are strings, as the headers and contents of chats are. */
function compileSum(node: Expression & { type: 'binary' }): Evaluate {
  const operands = sumOperands(node).map(compile);
  return (scope, runtime) => {
    const values = operands.map((operand) => operand(scope, runtime));
    if (values.every((value) => isStr(value) && !isMarkup(value))) return concatAll(values);
    return values.reduce((sum, value) => binary('+', sum, value));
  };
}

function sumOperands(node: Expression): Expression[] {
  return node.type === 'binary' && node.operator === '+' ? [...sumOperands(node.left), node.right] : [node];
}

function compileName(name: string): Evaluate {
  const missing = new Undefined(`'${name}' is undefined`);
  return (scope) => {
    const value = scope.lookup(name);
    return value === undefined ? missing : value;
  };
}

function compileItems(type: 'list' | 'tuple', nodes: readonly Expression[]): Evaluate {
  const items = nodes.map(compile);
  if (type === 'list') return (scope, runtime) => items.map((item) => item(scope, runtime));
  return (scope, runtime) => new Tuple(items.map((item) => item(scope, runtime)));
}

function compileDict(nodes: readonly (readonly [Expression, Expression])[]): Evaluate {
  const entries = nodes.map(([key, value]) => [compile(key), compile(value)] as const);
  return (scope, runtime) =>
    Dict.of(entries.map(([key, value]) => [key(scope, runtime), value(scope, runtime)] as const));
}

function compileCondition(node: Expression & { type: 'condition' }): Evaluate {
  const test = compileQuiet(node.test);
  const then = compile(node.then);
  const message = `the inline if-expression on line ${node.line} evaluated to false and no else section was defined.`;
  const otherwise = node.otherwise ? compile(node.otherwise) : constant(new Undefined(message));
  return (scope, runtime) =>
    isTrue(test(scope, runtime)) ? then(scope, runtime) : otherwise(scope, runtime);
}

function compileLogic(type: 'and' | 'or', left: Evaluate, right: Evaluate): Evaluate {
  const stopsAt = type === 'or';
  return (scope, runtime) => {
    const value = left(scope, runtime);
    return isTrue(value) === stopsAt ? value : right(scope, runtime);
  };
}

function compileCompare(node: Expression & { type: 'compare' }): Evaluate {
  const first = compileQuiet(node.first);
  const rest = node.rest.map(([operator, operand]) => [operator, compileQuiet(operand)] as const);
  return (scope, runtime) => {
    let left = first(scope, runtime);
    for (const [operator, operand] of rest) {
      const right = operand(scope, runtime);
      if (!compare(operator, left, right)) return false;
      left = right;
    }
    return true;
  };
}

function compileSubscript(objectNode: Expression, keyNode: Expression): Evaluate {
  const object = compile(objectNode);
  if (keyNode.type === 'slice') {
    const [start, stop, step] = [keyNode.start, keyNode.stop, keyNode.step].map((part) =>
      part ? compile(part) : constant(null),
    );
    return (scope, runtime) => {
      const value = object(scope, runtime);
      const slice = {
        start: start?.(scope, runtime) ?? null,
        stop: stop?.(scope, runtime) ?? null,
        step: step?.(scope, runtime) ?? null,
      };
      return getSlice(value, slice);
    };
  }
  const key = compileQuiet(keyNode);
  return (scope, runtime) => {
    const value = object(scope, runtime);
    const at = key(scope, runtime);
    const result = getSubscript(value, at);
    runtime.noteSubscript(at, result);
    return result;
  };
}

const NO_ARGUMENTS: Arguments = { positional: [], named: NO_KWARGS };

interface Arguments {
  readonly positional: Value[];
  readonly named: Kwargs;
}

function compileArguments(
  node: CallArguments,
  compileArgument = compile,
): (scope: Scope, runtime: Runtime) => Arguments {
  const positional = node.positional.map((argument) => compileArgument(argument));
  const named = node.named.map(([name, value]) => [name, compileArgument(value)] as const);
  const spread = node.spread && compile(node.spread);
  const spreadMap = node.spreadNamed && compile(node.spreadNamed);
  if (positional.length + named.length === 0 && !spread && !spreadMap) return () => NO_ARGUMENTS;
  return (scope, runtime) => {
    const args = positional.map((argument) => argument(scope, runtime));
    if (spread) args.push(...spreadArguments(spread(scope, runtime)));
    if (named.length === 0 && !spreadMap) return { positional: args, named: NO_KWARGS };
    const kwargs = new Map(named.map(([name, value]) => [name, value(scope, runtime)]));
    if (spreadMap)
      for (const [name, value] of spreadNamed(spreadMap(scope, runtime))) kwargs.set(name, value);
    return { positional: args, named: kwargs };
  };
}

function compileCall(calleeNode: Expression, argumentsNode: CallArguments): Evaluate {
  const { evaluate } = compileCallParts(calleeNode, argumentsNode);
  return (scope, runtime) => evaluate(scope, runtime, undefined);
}

/** A call that can be given one more named argument, as a call block gives `caller`. */
export function compileCallParts(
  calleeNode: Expression,
  argumentsNode: CallArguments,
): { evaluate: (scope: Scope, runtime: Runtime, caller: Value | undefined) => Value } {
  if (calleeNode.type === 'attribute') return compileMethodCall(calleeNode, argumentsNode);
  const callee = compile(calleeNode);
  const args = compileArguments(argumentsNode);
  return {
    evaluate: (scope, runtime, caller) => {
      const target = callee(scope, runtime);
      const { positional, named } = args(scope, runtime);
      return call(target, positional, caller === undefined ? named : new Map([...named, ['caller', caller]]));
    },
  };
}

/** The arguments of a method (split, startswith) are looked at, not printed: they carry no origin. */
function compileMethodCall(
  { object: objectNode, name }: Expression & { type: 'attribute' },
  argumentsNode: CallArguments,
): ReturnType<typeof compileCallParts> {
  const object = compile(objectNode);
  const args = compileArguments(argumentsNode, compileQuiet);
  const strMethod = STR_METHODS.get(name);
  return {
    evaluate: (scope, runtime, caller) => {
      const self = object(scope, runtime);
      if (strMethod && isStr(self) && caller === undefined) {
        const { positional, named } = args(scope, runtime);
        return strMethod(self, positional, named);
      }
      const target = getAttribute(self, name);
      const { positional, named } = args(scope, runtime);
      return call(target, positional, caller === undefined ? named : new Map([...named, ['caller', caller]]));
    },
  };
}

function compileFilter(node: Expression & { type: 'filter' }): Evaluate {
  const operand = node.operand ? compile(node.operand) : (scope: Scope) => scope.lookup(FILTER_OPERAND) ?? '';
  const args = compileArguments(node.arguments);
  const filter = findFilter(node.name);
  return (scope, runtime) => {
    const value = operand(scope, runtime);
    const { positional, named } = args(scope, runtime);
    return filter(value, positional, named);
  };
}

/** Where filter and set blocks put the text that their filter works on: no name a template can write. */
export const FILTER_OPERAND = '|';
