/** The functions that every chat template can call. */
import { bind } from './arguments.ts';
import { dictPairs } from './attributes.ts';
import { TemplateError, typeError, valueError } from './errors.ts';
import { iterate, makeRange } from './operators.ts';
import { toStr } from './print.ts';
import { Scope } from './runtime.ts';
import { strftime } from './strftime.ts';
import { textOf } from './taggedString.ts';
import { Callable, Dict, Namespace, PyObject, isInt, typeName } from './values.ts';
import type { Kwargs, Value } from './values.ts';

const MAX_RANGE = 100_000;

function range(args: Value[]): Value {
  const numbers = args.map((arg) => {
    if (!isInt(arg)) throw typeError(`'${typeName(arg)}' object cannot be interpreted as an integer`);
    return Number(arg);
  });
  if (numbers.length === 0 || numbers.length > 3)
    throw typeError(`range expected 1 to 3 arguments, got ${numbers.length}`);
  const [first = 0, second, step = 1] = numbers;
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  if (step === 0) throw valueError('range() arg 3 must not be zero');
  const size = Math.max(0, Math.ceil((stop - start) / step));
  if (size > MAX_RANGE) {
    throw new TemplateError(
      'OverflowError',
      `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${MAX_RANGE}).`,
    );
  }
  return makeRange(start, stop, step);
}

function dict(args: Value[], kwargs: Kwargs): Dict {
  const result = new Dict();
  const [source] = args;
  if (source !== undefined) {
    const pairs = source instanceof Dict ? dictPairs(source) : iterate(source);
    for (const pair of pairs) {
      const [key = null, value = null, extra] = iterate(pair);
      if (extra !== undefined) throw valueError('dictionary update sequence element has more than 2 items');
      result.set(key, value);
    }
  }
  for (const [key, value] of kwargs) result.set(key, value);
  return result;
}

class Cycler extends PyObject {
  readonly typeName = 'Cycler';
  readonly #items: readonly Value[];
  #at = 0;

  constructor(items: readonly Value[]) {
    super();
    if (items.length === 0) throw new TemplateError('RuntimeError', 'at least one item has to be provided');
    this.#items = items;
  }

  override getAttribute(name: string): Value | undefined {
    if (name === 'current') return this.#items[this.#at];
    if (name === 'reset')
      return new Callable(name, () => {
        this.#at = 0;
        return null;
      });
    if (name !== 'next') return undefined;
    return new Callable(name, () => {
      const item = this.#items[this.#at] ?? null;
      this.#at = (this.#at + 1) % this.#items.length;
      return item;
    });
  }

  toRepr(): string {
    return '<Cycler>';
  }
}

function joiner(args: Value[], kwargs: Kwargs): Callable {
  const [separator = ', '] = bind('joiner', ['sep'], 0, args, kwargs);
  let isUsed = false;
  return new Callable('joiner', () => {
    if (isUsed) return separator;
    isUsed = true;
    return '';
  });
}

/** Globals of a render; `now` is what strftime_now tells. */
export function globalScope(now: Date): Scope {
  const scope = new Scope(BUILTINS);
  const strftimeNow = (args: Value[], kwargs: Kwargs): Value => {
    const [format] = bind('strftime_now', ['format'], 1, args, kwargs);
    return strftime(textOf(toStr(format ?? null)), now);
  };
  scope.set('strftime_now', new Callable('strftime_now', strftimeNow));
  return scope;
}

const BUILTINS = builtins();

function builtins(): Scope {
  const scope = new Scope();
  const define = (name: string, call: (args: Value[], kwargs: Kwargs) => Value, type = 'function'): void => {
    scope.set(name, new Callable(name, call, type));
  };
  define('range', range);
  define('dict', dict, 'type');
  define('namespace', (args, kwargs) => new Namespace(dict(args, kwargs)), 'type');
  define('cycler', (args) => new Cycler(args), 'type');
  define('joiner', joiner, 'type');
  define('lipsum', () => {
    throw new TemplateError(
      'ValueError',
      'lipsum() prints other text on every run: no dataset can be made of it',
    );
  });
  define('raise_exception', (args, kwargs) => {
    const [message] = bind('raise_exception', ['message'], 1, args, kwargs);
    throw new TemplateError('TemplateError', textOf(toStr(message ?? null)));
  });
  return scope;
}
