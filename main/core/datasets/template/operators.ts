/** Python's operators on template values. */
import { TemplateError, typeError, valueError } from './errors.ts';
import { formatPercent } from './format.ts';
import { comparePoints, toRepr, toStr } from './print.ts';
import {
  StrBuilder,
  Tagged,
  asPlain,
  concat,
  isStr,
  joinStr,
  pointOffsets,
  points,
  sliceUnits,
  textOf,
} from './taggedString.ts';
import type { Str } from './taggedString.ts';
import {
  Dict,
  Float,
  Iter,
  PyObject,
  Tuple,
  Undefined,
  hash,
  isInt,
  normalInt,
  toFloat,
  typeName,
} from './values.ts';
import type { Int, Value } from './values.ts';
import type { BinaryOperator, CompareOperator } from './ast.ts';

/** Raises what the use of an undefined value raises. */
export function failUndefined(value: Undefined): never {
  throw new TemplateError(value.pythonType, value.message);
}

export function binary(operator: BinaryOperator, a: Value, b: Value): Value {
  if (a instanceof Undefined) failUndefined(a);
  if (operator === '%' && isStr(a)) return formatPercent(a, b);
  if (b instanceof Undefined) failUndefined(b);
  if (operator === '+') {
    if (isStr(a) && isStr(b)) return concat(a, b);
    if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
    if (a instanceof Tuple && b instanceof Tuple) return new Tuple([...a.items, ...b.items]);
  }
  if (operator === '*') {
    if (isInt(b) && isRepeatable(a)) return repeat(a, Number(b));
    if (isInt(a) && isRepeatable(b)) return repeat(b, Number(a));
  }
  if (isInt(a) && isInt(b)) return intArithmetic(operator, a, b);
  if (isNumber(a) && isNumber(b)) return new Float(floatArithmetic(operator, toFloat(a), toFloat(b)));
  throw typeError(operandMessage(operator, a, b));
}

function operandMessage(operator: BinaryOperator, a: Value, b: Value): string {
  if (operator === '+') {
    for (const kind of ['str', 'list', 'tuple']) {
      if (typeName(a) === kind) return `can only concatenate ${kind} (not "${typeName(b)}") to ${kind}`;
    }
  }
  if (operator === '*' && (isRepeatable(a) || isRepeatable(b))) {
    return `can't multiply sequence by non-int of type '${typeName(isRepeatable(a) ? b : a)}'`;
  }
  const name = operator === '**' ? '** or pow()' : operator;
  return `unsupported operand type(s) for ${name}: '${typeName(a)}' and '${typeName(b)}'`;
}

export function isNumber(value: Value): value is Int | Float {
  return isInt(value) || value instanceof Float;
}

function isRepeatable(value: Value): value is Str | Value[] | Tuple {
  return isStr(value) || Array.isArray(value) || value instanceof Tuple;
}

function repeat(value: Str | Value[] | Tuple, times: number): Value {
  if (Math.abs(times) >= 2 ** 63)
    throw new TemplateError('OverflowError', "cannot fit 'int' into an index-sized integer");
  const count = Math.max(0, times);
  if (isStr(value)) {
    if (textOf(value).length * count > MAX_REPEATED)
      throw new TemplateError('MemoryError', 'a repeated string is too long');
    return typeof value === 'string' ? value.repeat(count) : joinStr('', Array<Str>(count).fill(value));
  }
  const items = Array.isArray(value) ? value : value.items;
  if (items.length * count > MAX_REPEATED)
    throw new TemplateError('MemoryError', 'a repeated list is too long');
  const repeated = Array.from({ length: count }, () => items).flat();
  return Array.isArray(value) ? repeated : new Tuple(repeated);
}

const MAX_REPEATED = 100_000_000;

function intArithmetic(operator: BinaryOperator, a: Int, b: Int): Value {
  if (operator === '/') {
    if (Number(b) === 0) throw new TemplateError('ZeroDivisionError', 'division by zero');
    return new Float(Number(a) / Number(b));
  }
  if (operator === '**') return power(a, b);
  const x = Number(a);
  const y = Number(b);
  if ((operator === '//' || operator === '%') && y === 0) {
    throw new TemplateError(
      'ZeroDivisionError',
      `integer ${operator === '%' ? 'modulo' : 'division or modulo'} by zero`,
    );
  }
  if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) {
    const result = smallArithmetic(operator, x, y);
    if (Number.isSafeInteger(result)) return result + 0;
  }
  return normalInt(bigArithmetic(operator, BigInt(a), BigInt(b)));
}

function smallArithmetic(operator: BinaryOperator, x: number, y: number): number {
  if (operator === '+') return x + y;
  if (operator === '-') return x - y;
  if (operator === '*') return x * y;
  const rest = x % y;
  const mod = rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest;
  return operator === '%' ? mod : (x - mod) / y;
}

function bigArithmetic(operator: BinaryOperator, x: bigint, y: bigint): bigint {
  if (operator === '+') return x + y;
  if (operator === '-') return x - y;
  if (operator === '*') return x * y;
  const rest = x % y;
  const mod = rest !== 0n && rest < 0n !== y < 0n ? rest + y : rest;
  return operator === '%' ? mod : (x - mod) / y;
}

function power(a: Int, b: Int): Value {
  if (Number(b) < 0) {
    if (Number(a) === 0)
      throw new TemplateError('ZeroDivisionError', '0.0 cannot be raised to a negative power');
    return new Float(Number(a) ** Number(b));
  }
  if (Math.log2(Math.abs(Number(a)) + 1) * Number(b) > 100_000) {
    throw new TemplateError('OverflowError', 'the power is too large');
  }
  return normalInt(BigInt(a) ** BigInt(b));
}

function floatArithmetic(operator: BinaryOperator, x: number, y: number): number {
  if (operator === '+') return x + y;
  if (operator === '-') return x - y;
  if (operator === '*') return x * y;
  if (operator === '**') {
    if (x === 0 && y < 0)
      throw new TemplateError('ZeroDivisionError', '0.0 cannot be raised to a negative power');
    const result = x ** y;
    if (Number.isFinite(x) && Number.isFinite(y) && !Number.isFinite(result)) {
      throw new TemplateError('OverflowError', "(34, 'Numerical result out of range')");
    }
    return result;
  }
  if (y === 0) {
    const what = { '/': 'float division by zero', '//': 'float floor division by zero', '%': 'float modulo' }[
      operator
    ];
    throw new TemplateError('ZeroDivisionError', what);
  }
  if (operator === '/') return x / y;
  const rest = x % y;
  const mod = rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest;
  if (operator === '%') return mod === 0 ? Math.sign(y) * 0 : mod;
  return Math.floor(Math.round((x - mod) / y));
}

export function negate(value: Value): Value {
  if (value instanceof Undefined) failUndefined(value);
  if (value instanceof Float) return new Float(-value.value);
  if (isInt(value)) return intArithmetic('-', 0, value);
  throw typeError(`bad operand type for unary -: '${typeName(value)}'`);
}

export function positive(value: Value): Value {
  if (value instanceof Undefined) failUndefined(value);
  if (value instanceof Float) return value;
  if (isInt(value)) return intArithmetic('+', 0, value);
  throw typeError(`bad operand type for unary +: '${typeName(value)}'`);
}

export function equal(a: Value, b: Value): boolean {
  if (isStr(a)) return isStr(b) && textOf(a) === textOf(b);
  if (isNumber(a)) return isNumber(b) && equalNumbers(a, b);
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(a, b);
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(a.items, b.items);
  if (a instanceof Dict) return b instanceof Dict && equalDicts(a, b);
  if (a instanceof Undefined) return b instanceof Undefined;
  if (
    a instanceof Iter &&
    b instanceof Iter &&
    !a.isOneShot &&
    a.kind === b.kind &&
    a.kind !== 'dict_values'
  ) {
    return equalItems(a.peek(), b.peek());
  }
  return false;
}

function equalNumbers(a: Int | Float, b: Int | Float): boolean {
  const x = plainNumber(a);
  const y = plainNumber(b);
  return typeof x === typeof y ? x === y : x <= y && x >= y;
}

function plainNumber(value: Int | Float): number | bigint {
  return value instanceof Float ? value.value : typeof value === 'boolean' ? Number(value) : value;
}

function equalItems(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((item, i) => equal(item, b[i] ?? null));
}

function equalDicts(a: Dict, b: Dict): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a.entries()) {
    const other = b.get(key);
    if (other === undefined || !equal(value, other)) return false;
  }
  return true;
}

/** Python's `a < b` and its kin; types without an order raise TypeError. */
export function order(operator: '<' | '<=' | '>' | '>=', a: Value, b: Value): boolean {
  if (a instanceof Undefined) failUndefined(a);
  if (b instanceof Undefined) failUndefined(b);
  if (isNumber(a) && isNumber(b)) {
    const x = plainNumber(a);
    const y = plainNumber(b);
    if (operator === '<') return x < y;
    if (operator === '<=') return x <= y;
    return operator === '>' ? x > y : x >= y;
  }
  if (isStr(a) && isStr(b)) return holds(operator, comparePoints(textOf(a), textOf(b)));
  if (Array.isArray(a) && Array.isArray(b)) return orderItems(operator, a, b);
  if (a instanceof Tuple && b instanceof Tuple) return orderItems(operator, a.items, b.items);
  throw typeError(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

function holds(operator: '<' | '<=' | '>' | '>=', sign: number): boolean {
  if (operator === '<') return sign < 0;
  if (operator === '<=') return sign <= 0;
  return operator === '>' ? sign > 0 : sign >= 0;
}

function orderItems(operator: '<' | '<=' | '>' | '>=', a: readonly Value[], b: readonly Value[]): boolean {
  const differs = a.findIndex((item, i) => i >= b.length || !equal(item, b[i] ?? null));
  if (differs === -1 || differs >= b.length) return holds(operator, a.length - b.length);
  return order(operator, a[differs] ?? null, b[differs] ?? null);
}

/** `sorted(items, key=…)`: stable, raising where two keys have no order. */
export function sortBy(items: readonly Value[], key: (item: Value) => Value, isReversed: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  keyed.sort((a, b) => {
    if (order('<', a.key, b.key)) return isReversed ? 1 : -1;
    if (order('<', b.key, a.key)) return isReversed ? -1 : 1;
    return 0;
  });
  return keyed.map((entry) => entry.item);
}

export function compare(operator: CompareOperator, a: Value, b: Value): boolean {
  switch (operator) {
    case '==':
      return equal(a, b);
    case '!=':
      return !equal(a, b);
    case 'in':
      return contains(b, a);
    case 'not in':
      return !contains(b, a);
    default:
      return order(operator, a, b);
  }
}

/** `item in container`. */
export function contains(container: Value, item: Value): boolean {
  if (isStr(container)) {
    if (item instanceof Undefined) failIn(item);
    if (!isStr(item)) failIn(item);
    return textOf(container).includes(textOf(item));
  }
  if (container instanceof Dict) return container.has(item);
  if (container instanceof Undefined) return false;
  if (Array.isArray(container)) return container.some((other) => equal(item, other));
  if (container instanceof Tuple) return container.items.some((other) => equal(item, other));
  if (container instanceof Iter) return container.take().some((other) => equal(item, other));
  throw typeError(`argument of type '${typeName(container)}' is not iterable`);
}

function failIn(item: Value): never {
  throw typeError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
}

/** `list(value)`. */
export function iterate(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  if (isStr(value)) return points(asPlain(value));
  if (value instanceof Dict) return value.keys();
  if (value instanceof Tuple) return value.items;
  if (value instanceof Iter) return value.take();
  if (value instanceof Undefined) return [];
  throw typeError(`'${typeName(value)}' object is not iterable`);
}

/** `len(value)`. */
export function length(value: Value): number {
  if (isStr(value)) {
    const offsets = pointOffsets(textOf(value));
    return offsets ? offsets.length - 1 : textOf(value).length;
  }
  if (Array.isArray(value)) return value.length;
  if (value instanceof Dict) return value.size;
  if (value instanceof Tuple) return value.items.length;
  if (value instanceof Undefined) return 0;
  if (value instanceof Iter && !value.isOneShot) return value.peek().length;
  if (value instanceof PyObject) {
    const size = value.getAttribute('length');
    if (typeof size === 'number') return size;
  }
  throw typeError(`object of type '${typeName(value)}' has no len()`);
}

export interface Slice {
  readonly start: Value;
  readonly stop: Value;
  readonly step: Value;
}

function sliceIndex(value: Value): number | undefined {
  if (value === null) return undefined;
  if (isInt(value)) return Number(value);
  if (value instanceof Undefined) failUndefined(value);
  throw typeError('slice indices must be integers or None or have an __index__ method');
}

/** Where `[start:stop:step]` begins, ends (exclusive) and how far it steps in `size` items. */
function sliceBounds(slice: Slice, size: number): [start: number, stop: number, step: number] {
  const step = sliceIndex(slice.step) ?? 1;
  if (step === 0) throw valueError('slice step cannot be zero');
  const clamp = (value: number | undefined, fallback: number): number => {
    if (value === undefined) return fallback;
    const from = value < 0 ? value + size : value;
    return step > 0 ? Math.min(Math.max(from, 0), size) : Math.min(Math.max(from, -1), size - 1);
  };
  const start = clamp(sliceIndex(slice.start), step > 0 ? 0 : size - 1);
  const stop = clamp(sliceIndex(slice.stop), step > 0 ? size : -1);
  return [start, stop, step];
}

function sliceIndices(slice: Slice, size: number): number[] {
  return rangeItems(...sliceBounds(slice, size));
}

function rangeItems(start: number, stop: number, step: number): number[] {
  const size = Math.max(0, Math.ceil((stop - start) / step));
  return Array.from({ length: size }, (_, i) => start + i * step);
}

/** Python's `range(start, stop, step)`. */
export function makeRange(start: number, stop: number, step: number): Iter {
  const repr = step === 1 ? `range(${start}, ${stop})` : `range(${start}, ${stop}, ${step})`;
  return new Iter('range', rangeItems(start, stop, step), { repr, bounds: [start, stop, step] });
}

function sliceRange([from, , by]: readonly [number, number, number], slice: Slice, size: number): Iter {
  const [start, stop, step] = sliceBounds(slice, size);
  return makeRange(from + start * by, from + stop * by, by * step);
}

/** `value[start:stop:step]`. */
export function getSlice(value: Value, slice: Slice): Value {
  if (value instanceof Undefined) failUndefined(value);
  if (isStr(value)) return sliceStr(value, slice);
  const items = sliceable(value);
  if (!items) {
    throw typeError(
      value instanceof Dict ? "unhashable type: 'slice'" : `'${typeName(value)}' object is not subscriptable`,
    );
  }
  if (value instanceof Iter && value.range) return sliceRange(value.range.bounds, slice, items.length);
  const picked = sliceIndices(slice, items.length).map((i) => items[i] ?? null);
  return value instanceof Tuple ? new Tuple(picked) : picked;
}

function sliceable(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value)) return value;
  if (value instanceof Tuple) return value.items;
  return value instanceof Iter && value.kind === 'range' ? value.peek() : undefined;
}

function sliceStr(value: Str, slice: Slice): Str {
  const text = textOf(value);
  const offsets = pointOffsets(text);
  const indices = sliceIndices(slice, offsets ? offsets.length - 1 : text.length);
  const unit = (i: number): number => (offsets ? (offsets[i] ?? text.length) : i);
  const step = sliceIndex(slice.step) ?? 1;
  if (step === 1) {
    const first = indices[0];
    const last = indices.at(-1);
    return first === undefined || last === undefined
      ? sliceUnits(value, 0, 0)
      : sliceUnits(value, unit(first), unit(last + 1));
  }
  const builder = new StrBuilder();
  for (const i of indices) builder.add(sliceUnits(value, unit(i), unit(i + 1)));
  return builder.build(value instanceof Tagged && value.isMarkup);
}

/** `value[key]` where Python finds something; undefined for a LookupError or TypeError. */
export function getItem(value: Value, key: Value): Value | undefined {
  if (value instanceof Dict) {
    if (Array.isArray(key) || key instanceof Dict) return undefined;
    return value.get(key);
  }
  if (value instanceof Undefined) failUndefined(value);
  if (!isInt(key)) return undefined;
  const index = Number(key);
  if (isStr(value)) return charAt(value, index);
  const items = sliceable(value);
  return items?.[index < 0 ? index + items.length : index];
}

function charAt(value: Str, index: number): Str | undefined {
  const text = textOf(value);
  const offsets = pointOffsets(text);
  const size = offsets ? offsets.length - 1 : text.length;
  const at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) return undefined;
  return offsets ? sliceUnits(value, offsets[at] ?? 0, offsets[at + 1] ?? 0) : sliceUnits(value, at, at + 1);
}

/** How Jinja names an object in `… has no attribute …`. */
export function missingAttribute(object: Value, name: Value): Undefined {
  return new Undefined(() => {
    const described = object === null ? 'None' : `${typeName(object)} object`;
    const key = textOf(toRepr(name));
    return isStr(name) ? `'${described}' has no attribute ${key}` : `${described} has no element ${key}`;
  });
}

/** Distinct under equality, in order. */
export function uniqueBy(items: readonly Value[], key: (item: Value) => Value): Value[] {
  const seen = new Set<unknown>();
  return items.filter((item) => {
    const at = hash(key(item));
    if (seen.has(at)) return false;
    seen.add(at);
    return true;
  });
}

export function concatAll(items: readonly Value[]): Str {
  return joinStr('', items.map(toStr));
}
