/** Jinja's tests, `value is name`. Source: jinja2/tests.py 3.1. */
import { TemplateError, typeError } from './errors.ts';
import { binary, compare, contains, equal, isNumber } from './operators.ts';
import { toStr } from './print.ts';
import { isLower, isUpper } from './stringCase.ts';
import { isMarkup, isStr, textOf } from './taggedString.ts';
import { Callable, Dict, Float, Iter, Tuple, Undefined, hash } from './values.ts';
import type { Value } from './values.ts';
import type { CompareOperator } from './ast.ts';
import { FILTER_NAMES } from './filters.ts';

export type Test = (value: Value, args: readonly Value[]) => boolean;

const comparison =
  (operator: CompareOperator): Test =>
  (value, args) =>
    compare(operator, value, required(args));
const is =
  (test: (value: Value) => boolean): Test =>
  (value) =>
    test(value);

function required(args: readonly Value[]): Value {
  const [first] = args;
  if (first === undefined) throw typeError('the test is missing its argument');
  return first;
}

function isPlainInt(value: Value): boolean {
  return typeof value === 'number' || typeof value === 'bigint';
}

const remainderIs =
  (divisor: Value, rest: number): Test =>
  (value) =>
    equal(binary('%', value, divisor), rest);

function isSame(a: Value, b: Value): boolean {
  if (a === b) return true;
  return isStr(a) && isStr(b) && textOf(a) === textOf(b);
}

function isSequence(value: Value): boolean {
  if (value instanceof Iter) return value.kind === 'range';
  return (
    isStr(value) || Array.isArray(value) || [Tuple, Dict, Undefined].some((type) => value instanceof type)
  );
}

function isIterable(value: Value): boolean {
  return isSequence(value) || value instanceof Iter;
}

const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['odd', remainderIs(2, 1)],
  ['even', remainderIs(2, 0)],
  ['divisibleby', (value, args) => equal(binary('%', value, required(args)), 0)],
  ['defined', is((value) => !(value instanceof Undefined))],
  ['undefined', is((value) => value instanceof Undefined)],
  ['none', is((value) => value === null)],
  ['boolean', is((value) => typeof value === 'boolean')],
  ['false', is((value) => value === false)],
  ['true', is((value) => value === true)],
  ['integer', is(isPlainInt)],
  ['float', is((value) => value instanceof Float)],
  ['number', is(isNumber)],
  ['string', is(isStr)],
  ['mapping', is((value) => value instanceof Dict)],
  ['sequence', is(isSequence)],
  ['iterable', is(isIterable)],
  ['callable', is((value) => value instanceof Callable || value instanceof Undefined)],
  ['escaped', is(isMarkup)],
  ['lower', is((value) => isLower(textOf(toStr(value))))],
  ['upper', is((value) => isUpper(textOf(toStr(value))))],
  ['sameas', (value, args) => isSame(value, required(args))],
  ['in', (value, args) => contains(required(args), value)],
  ['filter', is((value) => FILTER_NAMES.has(hash(value)))],
  ['test', is((value): boolean => TESTS.has(String(hash(value))))],
  ['eq', comparison('==')],
  ['equalto', comparison('==')],
  ['==', comparison('==')],
  ['ne', comparison('!=')],
  ['!=', comparison('!=')],
  ['gt', comparison('>')],
  ['greaterthan', comparison('>')],
  ['>', comparison('>')],
  ['ge', comparison('>=')],
  ['>=', comparison('>=')],
  ['lt', comparison('<')],
  ['lessthan', comparison('<')],
  ['<', comparison('<')],
  ['le', comparison('<=')],
  ['<=', comparison('<=')],
]);

/** Runs a test by name. An unknown one raises as Jinja does when the template is compiled. */
export function runTest(name: string, value: Value, args: readonly Value[]): boolean {
  const test = TESTS.get(name);
  if (!test) throw new TemplateError('TemplateAssertionError', `No test named '${name}'.`);
  return test(value, args);
}
