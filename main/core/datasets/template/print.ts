/** Python's str(), repr() and json.dumps(), keeping the origin of every character. */
import { TemplateError, typeError } from './errors.ts';
import { StrBuilder, asPlain, isMarkup, isStr, mapRuns, originAt, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Dict, Float, Iter, Tuple, Undefined, isInt, typeName } from './values.ts';
import type { Value } from './values.ts';

/** Python's repr of a float: the shortest digits, an exponent below 1e-4 and from 1e16 on. */
export function floatRepr(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const [digits = '', exponentText = ''] = value.toExponential().split('e');
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    const padded = String(Math.abs(exponent)).padStart(2, '0');
    return `${digits}e${exponent < 0 ? '-' : '+'}${padded}`;
  }
  const text = String(value);
  if (text.includes('e')) return value.toFixed(20).replace(/0+$/, '');
  return text.includes('.') ? text : `${text}.0`;
}

/** `str(value)`. */
export function toStr(value: Value): Str {
  if (isStr(value)) return value;
  if (value instanceof Undefined) return '';
  return toRepr(value);
}

/** `repr(value)`. */
export function toRepr(value: Value): Str {
  const builder = new StrBuilder();
  writeRepr(builder, value);
  return builder.build();
}

function writeRepr(builder: StrBuilder, value: Value): void {
  if (isStr(value)) builder.add(strRepr(value));
  else if (Array.isArray(value)) writeItems(builder, '[', value, ']');
  else if (value instanceof Tuple)
    writeItems(builder, '(', value.items, value.items.length === 1 ? ',)' : ')');
  else if (value instanceof Dict) writeDict(builder, value);
  else if (value instanceof Iter) writeIter(builder, value);
  else builder.addText(scalarRepr(value), 0);
}

function scalarRepr(value: Exclude<Value, Str | Value[] | Tuple | Dict | Iter>): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number' || typeof value === 'bigint') return value.toString();
  if (value instanceof Float) return floatRepr(value.value);
  if (value instanceof Undefined) return 'Undefined';
  return value.toRepr();
}

function writeItems(builder: StrBuilder, open: string, items: readonly Value[], close: string): void {
  builder.addText(open, 0);
  items.forEach((item, i) => {
    if (i > 0) builder.addText(', ', 0);
    writeRepr(builder, item);
  });
  builder.addText(close, 0);
}

function writeDict(builder: StrBuilder, dict: Dict): void {
  builder.addText('{', 0);
  let isFirst = true;
  for (const [key, value] of dict.entries()) {
    if (!isFirst) builder.addText(', ', 0);
    isFirst = false;
    writeRepr(builder, key);
    builder.addText(': ', 0);
    writeRepr(builder, value);
  }
  builder.addText('}', 0);
}

function writeIter(builder: StrBuilder, value: Iter): void {
  if (value.range) {
    builder.addText(value.range.repr, 0);
    return;
  }
  if (value.isOneShot) {
    throw new TemplateError(
      'TypeError',
      'a generator is printed with its address, which differs on every run: turn it into a list with |list',
    );
  }
  writeItems(builder, `${value.kind}([`, value.peek(), '])');
}

const UNPRINTABLE = /[\p{C}\p{Z}]/gu;

function strRepr(value: Str): Str {
  const text = textOf(value);
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const builder = new StrBuilder();
  const type = isMarkup(value);
  builder.addText(type ? `Markup(${quote}` : quote, originAt(value, 0));
  builder.add(mapRuns(asPlain(value), (part) => reprEscape(part, quote)));
  builder.addText(type ? `${quote})` : quote, originAt(value, text.length - 1));
  return builder.build();
}

const REPR_ESCAPES: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function reprEscape(text: string, quote: string): string {
  const quoted = text.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`);
  return quoted.replace(UNPRINTABLE, (char) => {
    if (char === ' ') return char;
    const known = REPR_ESCAPES[char];
    if (known !== undefined) return known;
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
    if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`;
    return `\\U${code.toString(16).padStart(8, '0')}`;
  });
}

export interface JsonOptions {
  readonly indent?: string | undefined;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly ensureAscii: boolean;
  readonly sortKeys: boolean;
}

/** `json.dumps(value, …)`; what JSON has no word for raises Python's TypeError. */
export function toJson(value: Value, options: JsonOptions): Str {
  const builder = new StrBuilder();
  new JsonWriter(builder, options).write(value, 0);
  return builder.build();
}

class JsonWriter {
  readonly #out: StrBuilder;
  readonly #options: JsonOptions;

  constructor(out: StrBuilder, options: JsonOptions) {
    this.#out = out;
    this.#options = options;
  }

  write(value: Value, depth: number): void {
    if (isStr(value)) this.#string(value);
    else if (Array.isArray(value)) this.#sequence(value, depth);
    else if (value instanceof Tuple) this.#sequence(value.items, depth);
    else if (value instanceof Dict) this.#object(value, depth);
    else if (value === null || isInt(value) || value instanceof Float)
      this.#out.addText(jsonScalar(value), 0);
    else throw typeError(`Object of type ${typeName(value)} is not JSON serializable`);
  }

  #string(value: Str): void {
    const text = textOf(value);
    this.#out.addText('"', originAt(value, 0));
    this.#out.add(mapRuns(asPlain(value), (part) => jsonEscape(part, this.#options.ensureAscii)));
    this.#out.addText('"', originAt(value, text.length - 1));
  }

  #newline(depth: number): void {
    if (this.#options.indent !== undefined) this.#out.addText(`\n${this.#options.indent.repeat(depth)}`, 0);
  }

  #sequence(items: readonly Value[], depth: number): void {
    if (items.length === 0) {
      this.#out.addText('[]', 0);
      return;
    }
    this.#out.addText('[', 0);
    items.forEach((item, i) => {
      if (i > 0) this.#out.addText(this.#options.itemSeparator, 0);
      this.#newline(depth + 1);
      this.write(item, depth + 1);
    });
    this.#newline(depth);
    this.#out.addText(']', 0);
  }

  #object(dict: Dict, depth: number): void {
    if (dict.size === 0) {
      this.#out.addText('{}', 0);
      return;
    }
    const entries = [...dict.entries()];
    if (this.#options.sortKeys) entries.sort((a, b) => compareKeys(a[0], b[0]));
    this.#out.addText('{', 0);
    entries.forEach(([key, value], i) => {
      if (i > 0) this.#out.addText(this.#options.itemSeparator, 0);
      this.#newline(depth + 1);
      this.#string(jsonKey(key));
      this.#out.addText(this.#options.keySeparator, 0);
      this.write(value, depth + 1);
    });
    this.#newline(depth);
    this.#out.addText('}', 0);
  }
}

function jsonKey(key: Value): Str {
  if (isStr(key)) return key;
  if (key === null || isInt(key) || key instanceof Float) return jsonScalar(key);
  throw typeError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function compareKeys(a: Value, b: Value): number {
  if (isStr(a) && isStr(b)) return comparePoints(textOf(a), textOf(b));
  if (isInt(a) && isInt(b)) return a < b ? -1 : a > b ? 1 : 0;
  throw typeError(`'<' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

/** Python's order of strings, by code point: UTF-16 units would put 🙂 before U+FFFD. */
export function comparePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const isHighX = x >= 0xd800 && x < 0xe000;
    const isHighY = y >= 0xd800 && y < 0xe000;
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}

function jsonScalar(value: null | boolean | number | bigint | Float): string {
  if (!(value instanceof Float)) return String(value);
  if (Number.isNaN(value.value)) return 'NaN';
  if (!Number.isFinite(value.value)) return value.value > 0 ? 'Infinity' : '-Infinity';
  return floatRepr(value.value);
}

const JSON_ESCAPES: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};

function jsonEscape(text: string, ensureAscii: boolean): string {
  const pattern = ensureAscii ? /["\\\u0000-\u001f]|[^\u0000-\u007e]/g : /["\\\u0000-\u001f]/g;
  return text.replace(pattern, (c) => {
    const code = c.charCodeAt(0);
    return JSON_ESCAPES[c] ?? (code === 0x7f ? c : `\\u${code.toString(16).padStart(4, '0')}`);
  });
}

/** The indent argument of json.dumps: a number of spaces or a string; None prints on one line. */
export function jsonIndent(value: Value): string | undefined {
  if (value === null || value instanceof Undefined) return undefined;
  if (isStr(value)) return textOf(value);
  if (isInt(value)) return ' '.repeat(Math.max(0, Number(value)));
  throw typeError(`can't multiply sequence by non-int of type '${typeName(value)}'`);
}
