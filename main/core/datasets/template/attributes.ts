/** Attribute and item access as Jinja's immutable sandbox allows it. */
import { bind } from './arguments.ts';
import { TemplateError, typeError, valueError } from './errors.ts';
import { equal, failUndefined, getItem, iterate, missingAttribute } from './operators.ts';
import { toRepr } from './print.ts';
import { STR_METHODS } from './stringMethods.ts';
import { isStr, textOf } from './taggedString.ts';
import {
  Callable,
  Dict,
  Float,
  Iter,
  PyObject,
  Tuple,
  Undefined,
  isInt,
  orElse,
  typeName,
} from './values.ts';
import type { Kwargs, Value } from './values.ts';

const DICT_MUTATORS = ['clear', 'pop', 'popitem', 'setdefault', 'update'];
const LIST_MUTATORS = ['append', 'clear', 'pop', 'reverse', 'insert', 'sort', 'extend', 'remove'];

const DICT_METHODS = ['get', 'items', 'keys', 'values', 'copy'];

/** Whether `dict.name` may be something else than the item of that name. */
export function isDictAttribute(name: string): boolean {
  return name.startsWith('__') || DICT_METHODS.includes(name) || DICT_MUTATORS.includes(name);
}

/** `object.name`: the attribute first, then the item. */
export function getAttribute(object: Value, name: string): Value {
  if (object instanceof Undefined) failUndefined(object);
  const attribute = attributeOf(object, name);
  if (attribute !== undefined) return attribute;
  return orElse(getItem(object, name), () => missingAttribute(object, name));
}

/** `object[key]`: the item first, then the attribute. */
export function getSubscript(object: Value, key: Value): Value {
  const item = getItem(object, key);
  if (item !== undefined) return item;
  const attribute = isStr(key) ? attributeOf(object, textOf(key)) : undefined;
  return orElse(attribute, () => missingAttribute(object, key));
}

/** The `attr` filter: an attribute, never an item. */
export function onlyAttribute(object: Value, name: string): Value {
  if (object instanceof Undefined) failUndefined(object);
  return orElse(attributeOf(object, name), () => missingAttribute(object, name));
}

function attributeOf(object: Value, name: string): Value | undefined {
  if (object instanceof PyObject) return object.getAttribute(name);
  if (name.startsWith('__') && name.endsWith('__')) {
    return object instanceof Dict && object.has(name) ? undefined : unsafe(object, name);
  }
  if (isStr(object)) {
    const method = STR_METHODS.get(name);
    return (
      method &&
      new Callable(name, (args, kwargs) => method(object, args, kwargs), 'builtin_function_or_method')
    );
  }
  if (object instanceof Dict) {
    return DICT_MUTATORS.includes(name) ? unsafe(object, name) : dictMethod(object, name);
  }
  if (Array.isArray(object)) {
    if (LIST_MUTATORS.includes(name)) return unsafe(object, name);
    return name === 'copy' ? method(name, () => [...object]) : sequenceMethod(object, name);
  }
  if (object instanceof Tuple) return sequenceMethod(object.items, name) ?? groupAttribute(object, name);
  if (object instanceof Iter && object.range) return sequenceMethod(object.peek(), name);
  if (object instanceof Float)
    return name === 'is_integer' ? method(name, () => Number.isInteger(object.value)) : undefined;
  return undefined;
}

/** What groupby gives: a tuple of which the parts have names. */
export class GroupTuple extends Tuple {}

function groupAttribute(object: Tuple, name: string): Value | undefined {
  if (!(object instanceof GroupTuple)) return undefined;
  return name === 'grouper' ? object.items[0] : name === 'list' ? object.items[1] : undefined;
}

function unsafe(object: Value, name: string): Undefined {
  const message = `access to attribute '${name}' of '${typeName(object)}' object is unsafe.`;
  return new Undefined(message, 'SecurityError');
}

function method(name: string, call: (args: Value[], kwargs: Kwargs) => Value): Callable {
  return new Callable(name, call, 'builtin_function_or_method');
}

function pairs(dict: Dict): Tuple[] {
  return Array.from(dict.entries(), ([key, value]) => new Tuple([key, value]));
}

function dictMethod(dict: Dict, name: string): Callable | undefined {
  switch (name) {
    case 'get':
      return method(name, (args, kwargs) => {
        const [key = null, fallback = null] = bind('get', ['key', 'default'], 1, args, kwargs);
        return orElse(dict.get(key), () => fallback);
      });
    case 'items':
      return method(name, () => new Iter('dict_items', pairs(dict)));
    case 'keys':
      return method(name, () => new Iter('dict_keys', dict.keys()));
    case 'values':
      return method(name, () => new Iter('dict_values', dict.values()));
    case 'copy':
      return method(name, () => Dict.of(dict.entries()));
  }
  return undefined;
}

export { pairs as dictPairs };

function sequenceMethod(items: readonly Value[], name: string): Callable | undefined {
  if (name === 'count') {
    return method(name, (args) => items.filter((item) => equal(item, args[0] ?? null)).length);
  }
  if (name !== 'index') return undefined;
  return method(name, (args) => {
    const at = items.findIndex((item) => equal(item, args[0] ?? null));
    if (at === -1) throw valueError(`${textOf(toRepr(args[0] ?? null))} is not in list`);
    return at;
  });
}

/** Calls what a template calls. Classes and mutators of the sandbox raise here. */
export function call(callee: Value, args: Value[], kwargs: Kwargs): Value {
  if (callee instanceof Callable) return callee.call(args, kwargs);
  if (callee instanceof Undefined) failUndefined(callee);
  throw typeError(`'${typeName(callee)}' object is not callable`);
}

/** `*value` in a call. */
export function spreadArguments(value: Value): readonly Value[] {
  return iterate(value);
}

/** `**value` in a call. */
export function spreadNamed(value: Value): [string, Value][] {
  if (!(value instanceof Dict))
    throw typeError(`argument after ** must be a mapping, not ${typeName(value)}`);
  return Array.from(value.entries(), ([key, item]): [string, Value] => {
    if (!isStr(key)) throw typeError('keywords must be strings');
    return [textOf(key), item];
  });
}

/** The attribute argument of filters: a name, a number, or a dotted path of both. */
export function attributeGetter(attribute: Value, fallback: Value | undefined): (item: Value) => Value {
  const path = attributePath(attribute);
  return (item) => {
    let value = item;
    for (const part of path) {
      value = getSubscript(value, part);
      if (fallback !== undefined && fallback !== null && value instanceof Undefined) value = fallback;
    }
    return value;
  };
}

function attributePath(attribute: Value): Value[] {
  if (attribute === null) return [];
  if (isStr(attribute))
    return textOf(attribute)
      .split('.')
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  if (isInt(attribute)) return [attribute];
  throw new TemplateError(
    'TypeError',
    `an attribute is named by a str or an int, not ${typeName(attribute)}`,
  );
}
