/** Jinja's filters, `value | name`. Source: jinja2/filters.py 3.1; `tojson` is the one of transformers. */
import { NO_KWARGS, bind } from './arguments.ts';
import { GroupTuple, attributeGetter, dictPairs, onlyAttribute } from './attributes.ts';
import { TemplateError, typeError, valueError } from './errors.ts';
import { fixed, formatPercent } from './format.ts';
import {
  binary,
  equal,
  failUndefined,
  isNumber,
  iterate,
  length,
  order,
  sortBy,
  uniqueBy,
} from './operators.ts';
import { pprint } from './pprint.ts';
import { jsonIndent, toJson, toStr } from './print.ts';
import { STRING_FILTERS } from './stringFilters.ts';
import { lower } from './stringCase.ts';
import { reverse } from './stringMethods.ts';
import { asMarkup, asPlain, escapeHtml, isStr, joinStr, textOf } from './taggedString.ts';
import { runTest } from './tests.ts';
import {
  Dict,
  Float,
  Iter,
  Tuple,
  Undefined,
  isInt,
  isTrue,
  normalInt,
  orElse,
  toFloat,
  typeName,
} from './values.ts';
import type { Kwargs, Value } from './values.ts';

export type Filter = (value: Value, args: Value[], kwargs: Kwargs) => Value;

/** A filter whose arguments after the value are `names`, none of them required unless said. */
function withArguments(
  filterName: string,
  names: readonly string[],
  apply: (value: Value, ...args: (Value | undefined)[]) => Value,
  numRequired = 0,
): [string, Filter] {
  return [
    filterName,
    (value, args, kwargs) => apply(value, ...bind(filterName, names, numRequired, args, kwargs)),
  ];
}

function generator(items: readonly Value[]): Iter {
  return new Iter('generator', [...items]);
}

function ignoreCase(value: Value): Value {
  return isStr(value) ? lower(value) : value;
}

function keyOf(
  attribute: Value | undefined,
  isCaseSensitive: Value | undefined,
  fallback?: Value,
): (item: Value) => Value {
  const get = attributeGetter(attribute ?? null, fallback);
  return isTrue(isCaseSensitive ?? false) ? get : (item) => ignoreCase(get(item));
}

function toInt(value: Value, fallback: Value, base: Value): Value {
  if (value instanceof Undefined) failUndefined(value);
  if (isInt(value)) return typeof value === 'boolean' ? Number(value) : value;
  if (value instanceof Float)
    return Number.isFinite(value.value)
      ? normalInt(BigInt(Math.trunc(value.value)))
      : overflowed(value.value, fallback);
  if (!isStr(value)) return fallback;
  const parsed = parseInteger(textOf(value), Number(isInt(base) ? base : 10));
  if (parsed !== undefined) return parsed;
  const float = parseFloatText(textOf(value));
  return float === undefined || !Number.isFinite(float) ? fallback : normalInt(BigInt(Math.trunc(float)));
}

function overflowed(value: number, fallback: Value): Value {
  if (Number.isNaN(value)) return fallback;
  throw new TemplateError('OverflowError', 'cannot convert float infinity to integer');
}

function parseInteger(text: string, base: number): Value | undefined {
  const match = /^([+-]?)(0[xX]|0[oO]|0[bB])?([0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*)$/.exec(pythonTrim(text));
  if (!match) return undefined;
  const [, sign = '', prefix = '', digits = ''] = match;
  const prefixBase = { '': base, '0x': 16, '0o': 8, '0b': 2 }[prefix.toLowerCase()] ?? base;
  if (prefix !== '' && base !== 0 && prefixBase !== base) return undefined;
  const radix = prefixBase === 0 ? 10 : prefixBase;
  let result = 0n;
  for (const digit of digits.replaceAll('_', '')) {
    const n = parseInt(digit, 36);
    if (Number.isNaN(n) || n >= radix) return undefined;
    result = result * BigInt(radix) + BigInt(n);
  }
  return normalInt(sign === '-' ? -result : result);
}

function pythonTrim(text: string): string {
  return text.replace(/^[\s\x1c-\x1f\x85]+|[\s\x1c-\x1f\x85]+$/g, '');
}

function parseFloatText(text: string): number | undefined {
  const trimmed = pythonTrim(text);
  if (/^[+-]?(?:inf|infinity)$/i.test(trimmed)) return trimmed.startsWith('-') ? -Infinity : Infinity;
  if (/^[+-]?nan$/i.test(trimmed)) return NaN;
  const isNumeric = /^[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?$/i.test(
    trimmed,
  );
  return isNumeric ? Number(trimmed.replaceAll('_', '')) : undefined;
}

function toFloatValue(value: Value, fallback: Value): Value {
  if (value instanceof Undefined) failUndefined(value);
  if (isNumber(value)) return new Float(toFloat(value));
  const parsed = isStr(value) ? parseFloatText(textOf(value)) : undefined;
  return parsed === undefined ? fallback : new Float(parsed);
}

function abs(value: Value): Value {
  if (value instanceof Undefined) failUndefined(value);
  if (value instanceof Float) return new Float(Math.abs(value.value));
  if (isInt(value)) return binary(Number(value) < 0 ? '-' : '+', 0, value);
  throw typeError(`bad operand type for abs(): '${typeName(value)}'`);
}

function round(value: Value, precision: Value | undefined, method: Value | undefined): Value {
  const how = method === undefined ? 'common' : textOf(toStr(method));
  if (!['common', 'ceil', 'floor'].includes(how))
    throw new TemplateError('FilterArgumentError', 'method must be common, ceil or floor');
  if (value instanceof Undefined) failUndefined(value);
  if (!isNumber(value)) throw typeError(`type ${typeName(value)} doesn't define __round__ method`);
  const digits = Number(isInt(precision ?? 0) ? (precision ?? 0) : 0);
  if (how !== 'common') {
    const scaled = Math[how === 'ceil' ? 'ceil' : 'floor'](toFloat(value) * 10 ** digits) / 10 ** digits;
    return new Float(scaled);
  }
  if (isInt(value)) return digits >= 0 ? binary('+', 0, value) : roundInt(BigInt(value), BigInt(-digits));
  return new Float(roundHalfEven(value.value, digits));
}

function roundInt(value: bigint, zeros: bigint): Value {
  const unit = 10n ** zeros;
  const rest = ((value % unit) + unit) % unit;
  const down = value - rest;
  const isUp = rest * 2n > unit || (rest * 2n === unit && (down / unit) % 2n !== 0n);
  return normalInt(isUp ? down + unit : down);
}

/** Python rounds the exact decimal value, ties to even; toFixed is exact and only ties need care. */
function roundHalfEven(value: number, digits: number): number {
  if (!Number.isFinite(value) || digits > 100) return value;
  if (digits < 0) return Number(roundInt(BigInt(Math.trunc(value)), BigInt(-digits)));
  const scaled = Math.abs(value) * 10 ** digits;
  const size = isExactTie(Math.abs(value), digits)
    ? (2 * Math.round(scaled / 2)) / 10 ** digits
    : Number(fixed(Math.abs(value), digits));
  return value < 0 ? -size : size;
}

function isExactTie(value: number, digits: number): boolean {
  const decimals = value.toFixed(Math.min(100, digits + 60)).split('.')[1] ?? '';
  return /^50*$/.test(decimals.slice(digits));
}

function noItem(which: 'first' | 'last'): () => Undefined {
  return () => new Undefined(`No ${which} item, sequence was empty.`);
}

function first(value: Value): Value {
  if (value instanceof Iter) return orElse(value.next(), noItem('first'));
  return orElse(iterate(value)[0], noItem('first'));
}

function last(value: Value): Value {
  if (value instanceof Iter && value.isOneShot)
    throw typeError(`'${typeName(value)}' object is not reversible`);
  return orElse(iterate(value).at(-1), noItem('last'));
}

function join(value: Value, separator: Value | undefined, attribute: Value | undefined): Value {
  const get =
    attribute === undefined || attribute === null ? undefined : attributeGetter(attribute, undefined);
  const items = iterate(value).map((item) => toStr(get ? get(item) : item));
  return joinStr(asPlain(toStr(separator ?? '')), items);
}

function sum(value: Value, attribute: Value | undefined, start: Value | undefined): Value {
  const get = attributeGetter(attribute ?? null, undefined);
  if (start !== undefined && isStr(start))
    throw typeError("sum() can't sum strings [use ''.join(seq) instead]");
  let total: Value = start ?? 0;
  for (const item of iterate(value)) total = binary('+', total, get(item));
  return total;
}

function extreme(operator: '<' | '>'): (value: Value, caseSensitive?: Value, attribute?: Value) => Value {
  return (value, caseSensitive, attribute) => {
    const key = keyOf(attribute, caseSensitive);
    let best: { item: Value; key: Value } | undefined;
    for (const item of iterate(value)) {
      const candidate = { item, key: key(item) };
      if (!best || order(operator, candidate.key, best.key)) best = candidate;
    }
    return best ? best.item : new Undefined('No aggregated item, sequence was empty.');
  };
}

function sort(
  value: Value,
  isReversed: Value | undefined,
  caseSensitive: Value | undefined,
  attribute: Value | undefined,
): Value {
  const attributes: Value[] = isStr(attribute ?? null)
    ? textOf(toStr(attribute ?? '')).split(',')
    : [attribute ?? null];
  const keys = attributes.map((one) => keyOf(one, caseSensitive));
  return sortBy(iterate(value), (item) => keys.map((key) => key(item)), isTrue(isReversed ?? false));
}

function dictsort(
  value: Value,
  caseSensitive: Value | undefined,
  by: Value | undefined,
  isReversed: Value | undefined,
): Value {
  const how = by === undefined ? 'key' : textOf(toStr(by));
  if (how !== 'key' && how !== 'value')
    throw new TemplateError('FilterArgumentError', 'You can only sort by either "key" or "value"');
  const key = keyOf(how === 'key' ? 0 : 1, caseSensitive);
  return sortBy(dictPairs(requireDict(value, 'items')), key, isTrue(isReversed ?? false));
}

function requireDict(value: Value, method: string): Dict {
  if (value instanceof Dict) return value;
  if (value instanceof Undefined) failUndefined(value);
  throw new TemplateError('AttributeError', `'${typeName(value)}' object has no attribute '${method}'`);
}

function groupby(
  value: Value,
  attribute: Value | undefined,
  fallback: Value | undefined,
  caseSensitive: Value | undefined,
): Value {
  const key = keyOf(attribute, caseSensitive, fallback);
  const named = attributeGetter(attribute ?? null, fallback);
  const groups: { key: Value; items: Value[] }[] = [];
  for (const item of sortBy(iterate(value), key, false)) {
    const at = key(item);
    const group = groups.at(-1);
    if (group && equal(group.key, at)) group.items.push(item);
    else groups.push({ key: at, items: [item] });
  }
  return groups.map((group) => new GroupTuple([named(group.items[0] ?? null), group.items]));
}

function batch(value: Value, size: Value | undefined, fill: Value | undefined): Value {
  const count = Number(isInt(size ?? null) ? size : 0);
  const batches: Value[] = [];
  let current: Value[] = [];
  for (const item of iterate(value)) {
    if (current.length === count) {
      batches.push(current);
      current = [];
    }
    current.push(item);
  }
  while (fill !== undefined && fill !== null && current.length > 0 && current.length < count)
    current.push(fill);
  if (current.length > 0) batches.push(current);
  return generator(batches);
}

function slice(value: Value, count: Value | undefined, fill: Value | undefined): Value {
  const items = iterate(value);
  const numSlices = Number(isInt(count ?? null) ? count : 0);
  if (numSlices === 0) throw new TemplateError('ZeroDivisionError', 'integer division or modulo by zero');
  const size = Math.floor(items.length / numSlices);
  const numLarger = items.length % numSlices;
  const slices: Value[] = [];
  for (let i = 0, start = 0; i < numSlices; i++) {
    const end = start + size + (i < numLarger ? 1 : 0);
    const part = items.slice(start, end);
    if (fill !== undefined && fill !== null && i >= numLarger) part.push(fill);
    slices.push(part);
    start = end;
  }
  return generator(slices);
}

function map(value: Value, args: Value[], kwargs: Kwargs): Value {
  if (!isTrue(value)) return generator([]);
  if (args.length === 0 && kwargs.has('attribute')) {
    const extra = [...kwargs.keys()].find((name) => name !== 'attribute' && name !== 'default');
    if (extra !== undefined)
      throw new TemplateError('FilterArgumentError', `Unexpected keyword argument '${extra}'`);
    const get = attributeGetter(kwargs.get('attribute') ?? null, kwargs.get('default'));
    return generator(iterate(value).map(get));
  }
  const [name, ...rest] = args;
  if (name === undefined) throw new TemplateError('FilterArgumentError', 'map requires a filter argument');
  return generator(iterate(value).map((item) => runFilter(textOf(toStr(name)), item, rest, kwargs)));
}

function selection(isKept: boolean, byAttribute: boolean): Filter {
  return (value, args) => {
    if (!isTrue(value)) return generator([]);
    const [attribute, ...afterAttribute] = args;
    if (byAttribute && attribute === undefined)
      throw new TemplateError('FilterArgumentError', 'Missing parameter for attribute name');
    const get = attributeGetter(byAttribute ? (attribute ?? null) : null, undefined);
    const [name, ...rest] = byAttribute ? afterAttribute : args;
    const test = (item: Value): boolean =>
      name === undefined ? isTrue(item) : runTest(textOf(toStr(name)), item, rest);
    return generator(iterate(value).filter((item) => test(get(item)) === isKept));
  };
}

function items(value: Value): Value {
  if (value instanceof Undefined) return generator([]);
  if (!(value instanceof Dict)) throw typeError('Can only get item pairs from a mapping.');
  return generator(dictPairs(value));
}

function reversed(value: Value): Value {
  if (isStr(value)) return reverse(value);
  if (isNumber(value) || value === null) {
    throw new TemplateError('FilterArgumentError', 'argument must be iterable');
  }
  return new Iter('reversed', [...iterate(value)].reverse());
}

function toJsonFilter(value: Value, args: Value[], kwargs: Kwargs): Value {
  const names = ['ensure_ascii', 'indent', 'separators', 'sort_keys'];
  const [ensureAscii, indent, separators, sortKeys] = bind('tojson', names, 0, args, kwargs);
  const indentText = jsonIndent(indent ?? null);
  let [itemSeparator, keySeparator] = [indentText === undefined ? ', ' : ',', ': '];
  if (separators !== undefined && separators !== null) {
    const pair = iterate(separators).map((part) => textOf(toStr(part)));
    if (pair.length !== 2) throw valueError('separators must be a pair of strings');
    [itemSeparator = itemSeparator, keySeparator = keySeparator] = pair;
  }
  return toJson(value, {
    indent: indentText,
    itemSeparator,
    keySeparator,
    ensureAscii: isTrue(ensureAscii ?? false),
    sortKeys: isTrue(sortKeys ?? false),
  });
}

function fallBack(value: Value, fallback: Value | undefined, onFalse: Value | undefined): Value {
  const isReplaced = value instanceof Undefined || (isTrue(onFalse ?? false) && !isTrue(value));
  return isReplaced ? orElse(fallback, () => '') : value;
}

const FILTERS = new Map<string, Filter>([
  ...STRING_FILTERS,
  withArguments('abs', [], abs),
  withArguments('attr', ['name'], (value, name) => onlyAttribute(value, textOf(toStr(name ?? null))), 1),
  withArguments('batch', ['linecount', 'fill_with'], batch, 1),
  withArguments('count', [], length),
  withArguments('length', [], length),
  withArguments('d', ['default_value', 'boolean'], fallBack),
  withArguments('default', ['default_value', 'boolean'], fallBack),
  withArguments('dictsort', ['case_sensitive', 'by', 'reverse'], dictsort),
  withArguments('first', [], first),
  withArguments('last', [], last),
  withArguments('float', ['default'], (value, fallback) =>
    toFloatValue(
      value,
      orElse(fallback, () => new Float(0)),
    ),
  ),
  withArguments('int', ['default', 'base'], (value, fallback, base) =>
    toInt(
      value,
      orElse(fallback, () => 0),
      base ?? 10,
    ),
  ),
  [
    'format',
    (value, args, kwargs) => {
      if (args.length > 0 && kwargs.size > 0)
        throw new TemplateError(
          'FilterArgumentError',
          "can't handle positional and keyword arguments at the same time",
        );
      return formatPercent(toStr(value), kwargs.size > 0 ? Dict.of(kwargs) : new Tuple(args));
    },
  ],
  withArguments('groupby', ['attribute', 'default', 'case_sensitive'], groupby, 1),
  withArguments('items', [], items),
  withArguments('join', ['d', 'attribute'], join),
  withArguments('list', [], (value) => [...iterate(value)]),
  ['map', map],
  withArguments('max', ['case_sensitive', 'attribute'], extreme('>')),
  withArguments('min', ['case_sensitive', 'attribute'], extreme('<')),
  ['reject', selection(false, false)],
  ['rejectattr', selection(false, true)],
  withArguments('pprint', [], pprint),
  withArguments('reverse', [], reversed),
  withArguments('round', ['precision', 'method'], round),
  withArguments('safe', [], (value) => asMarkup(toStr(value))),
  withArguments('e', [], (value) => escapeHtml(toStr(value))),
  withArguments('escape', [], (value) => escapeHtml(toStr(value))),
  ['select', selection(true, false)],
  ['selectattr', selection(true, true)],
  withArguments('slice', ['slices', 'fill_with'], slice, 1),
  withArguments('sort', ['reverse', 'case_sensitive', 'attribute'], sort),
  withArguments('sum', ['attribute', 'start'], sum),
  ['tojson', toJsonFilter],
  withArguments('unique', ['case_sensitive', 'attribute'], (value, caseSensitive, attribute) =>
    generator(uniqueBy(iterate(value), keyOf(attribute, caseSensitive))),
  ),
]);

export const FILTER_NAMES: ReadonlySet<unknown> = new Set(FILTERS.keys());

/** Runs a filter by name. */
export function runFilter(name: string, value: Value, args: Value[], kwargs: Kwargs = NO_KWARGS): Value {
  return findFilter(name)(value, args, kwargs);
}

/** A filter by name; an unknown one raises when it is used, as where Jinja meets it inside an `if`. */
export function findFilter(name: string): Filter {
  const missing = (): never => {
    throw new TemplateError('TemplateAssertionError', `No filter named '${name}'.`);
  };
  return FILTERS.get(name) ?? missing;
}
