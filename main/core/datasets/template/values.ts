/** Python values as the templates see them. */
import { typeError } from './errors.ts';
import { Tagged, isStr, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';

/**
 * int is a number while it is a safe integer, else a bigint; float is always a Float, so that 1.0 stays 1.0.
 */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Tagged
  | Float
  | Value[]
  | Tuple
  | Dict
  | Undefined
  | Iter
  | PyObject;

export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class Tuple {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

type Hash = string | number | bigint | null;

/** A Python dict: insertion order whatever the keys look like, 1 == 1.0 == True as keys. */
export class Dict {
  readonly #entries = new Map<Hash, [key: Value, value: Value]>();
  /** Turn of the message that this dict is, 0 for any other dict. See origins.ts. */
  turn = 0;

  static of(entries: Iterable<readonly [Value, Value]>): Dict {
    const dict = new Dict();
    for (const [key, value] of entries) dict.set(key, value);
    return dict;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Value): Value | undefined {
    return this.#entries.get(hash(key))?.[1];
  }

  has(key: Value): boolean {
    return this.#entries.has(hash(key));
  }

  set(key: Value, value: Value): void {
    const at = hash(key);
    const entry = this.#entries.get(at);
    if (entry) entry[1] = value;
    else this.#entries.set(at, [key, value]);
  }

  entries(): IterableIterator<[key: Value, value: Value]> {
    return this.#entries.values();
  }

  keys(): Value[] {
    return Array.from(this.#entries.values(), (entry) => entry[0]);
  }

  values(): Value[] {
    return Array.from(this.#entries.values(), (entry) => entry[1]);
  }
}

/** What equal keys share. Throws Python's TypeError for what cannot be a key. */
export function hash(key: Value): Hash {
  if (typeof key === 'string' || typeof key === 'number' || typeof key === 'bigint' || key === null)
    return key;
  if (key instanceof Tagged) return key.text;
  if (typeof key === 'boolean') return key ? 1 : 0;
  if (key instanceof Float) {
    const whole = Number.isInteger(key.value) && !Number.isSafeInteger(key.value);
    return whole ? BigInt(key.value) : key.value;
  }
  if (key instanceof Tuple) return `\u0000(${key.items.map((k) => hashText(hash(k))).join()})`;
  if (Array.isArray(key) || key instanceof Dict) throw typeError(`unhashable type: '${typeName(key)}'`);
  if (key instanceof Undefined) return '\u0000undefined';
  return `\u0000object ${identity(key)}`;
}

function hashText(part: Hash): string {
  return `${typeof part}${String(part).replace(/[,()\\]/g, '\\$&')}`;
}

const identities = new WeakMap<object, number>();
let numIdentities = 0;

function identity(value: object): number {
  const known = identities.get(value);
  if (known !== undefined) return known;
  identities.set(value, ++numIdentities);
  return numIdentities;
}

/** What a missing name or attribute gives: prints empty, is false, and fails when used further. */
export class Undefined {
  readonly #describe: string | (() => string);
  readonly pythonType: string;

  /** A message that costs something to put together is given as a function: most are never read. */
  constructor(message: string | (() => string), pythonType = 'UndefinedError') {
    this.#describe = message;
    this.pythonType = pythonType;
  }

  get message(): string {
    return typeof this.#describe === 'string' ? this.#describe : this.#describe();
  }
}

/** Generators, dict views and ranges: iterable, not lists. */
export class Iter {
  readonly kind: 'generator' | 'dict_items' | 'dict_keys' | 'dict_values' | 'range' | 'reversed';
  #items: Value[];
  /** How a range is written, and its start, stop and step. */
  readonly range: { repr: string; bounds: readonly [number, number, number] } | undefined;

  constructor(kind: Iter['kind'], items: Value[], range?: Iter['range']) {
    this.kind = kind;
    this.#items = items;
    this.range = range;
  }

  get isOneShot(): boolean {
    return this.kind === 'generator' || this.kind === 'reversed';
  }

  peek(): readonly Value[] {
    return this.#items;
  }

  /** All that is left; a generator is empty afterwards. */
  take(): Value[] {
    const items = this.#items;
    if (this.isOneShot) this.#items = [];
    return items;
  }

  /** The next one of a generator. */
  next(): Value | undefined {
    const first = this.#items[0];
    if (this.isOneShot) this.#items = this.#items.slice(1);
    return first;
  }
}

/** Anything else with attributes: functions, namespaces, loops. */
export abstract class PyObject {
  abstract readonly typeName: string;
  /** undefined: no such attribute. */
  getAttribute(_name: string): Value | undefined {
    return undefined;
  }
  abstract toRepr(): string;
}

export type Kwargs = ReadonlyMap<string, Value>;

export class Callable extends PyObject {
  readonly typeName: string;
  readonly name: string;
  readonly call: (args: Value[], kwargs: Kwargs) => Value;

  constructor(name: string, call: (args: Value[], kwargs: Kwargs) => Value, typeName = 'function') {
    super();
    this.name = name;
    this.call = call;
    this.typeName = typeName;
  }

  toRepr(): string {
    throw typeError(
      `'${this.name}' is printed with its address, which differs on every run: was a call meant?`,
    );
  }
}

export class Namespace extends PyObject {
  readonly typeName = 'Namespace';
  readonly attributes: Dict;

  constructor(attributes: Dict) {
    super();
    this.attributes = attributes;
  }

  override getAttribute(name: string): Value | undefined {
    return this.attributes.get(name);
  }

  toRepr(): string {
    return '<Namespace>';
  }
}

export type Int = boolean | number | bigint;

export function isInt(value: Value): value is Int {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean';
}

/** The int as small as it can be: a number when that is exact. */
export function normalInt(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

export function toFloat(value: Int | Float): number {
  return value instanceof Float ? value.value : Number(value);
}

/** `value`, or what `fallback` gives where there is none. None is a value, which `??` would pass over. */
export function orElse(value: Value | undefined, fallback: () => Value): Value {
  return value === undefined ? fallback() : value;
}

export function isTrue(value: Value): boolean {
  if (typeof value === 'boolean') return value;
  if (value === null) return false;
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value) !== 0;
  if (isStr(value)) return textOf(value) !== '';
  if (value instanceof Float) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (value instanceof Dict) return value.size > 0;
  if (value instanceof Undefined) return false;
  if (value instanceof Iter) return value.isOneShot || value.peek().length > 0;
  return true;
}

export function typeName(value: Value): string {
  if (value === null) return 'NoneType';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number' || typeof value === 'bigint') return 'int';
  if (isStr(value)) return value instanceof Tagged && value.isMarkup ? 'Markup' : 'str';
  if (value instanceof Float) return 'float';
  if (Array.isArray(value)) return 'list';
  if (value instanceof Tuple) return 'tuple';
  if (value instanceof Dict) return 'dict';
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof Iter) return value.kind === 'reversed' ? 'list_reverseiterator' : value.kind;
  return value.typeName;
}

/** From plain JavaScript data: integers become int, other numbers float, object keys keep their order. */
export function fromJs(value: unknown): Value {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return normalInt(value);
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : new Float(value);
  if (Array.isArray(value)) return value.map(fromJs);
  if (isValueObject(value)) return value;
  if (typeof value === 'object') {
    return Dict.of(
      Object.entries(value)
        .filter(([, v]) => v !== undefined)
        .map(([k, v]) => [k, fromJs(v)] as const),
    );
  }
  throw typeError(`a ${typeof value} cannot be passed to a template`);
}

function isValueObject(value: unknown): value is Value {
  return [Float, Tuple, Dict, Undefined, Iter, PyObject, Tagged].some((type) => value instanceof type);
}

export function requireStr(value: Value, what: string): Str {
  if (isStr(value)) return value;
  throw typeError(`${what} must be str, not ${typeName(value)}`);
}
