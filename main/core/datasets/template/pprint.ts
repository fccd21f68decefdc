/** Python's `pprint.pformat(value)` with its defaults: 80 columns, keys sorted, one item a line. Source: Lib/pprint.py */
import { PYTHON_SPACE } from './lexer.ts';
import { order } from './operators.ts';
import { toRepr } from './print.ts';
import { splitLines } from './stringParts.ts';
import { StrBuilder, asPlain, isStr, lengthInPoints, sliceUnits, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Dict, Tuple, typeName } from './values.ts';
import type { Value } from './values.ts';

const width = 80;
const PART = new RegExp(`[^${PYTHON_SPACE}]*[${PYTHON_SPACE}]*`, 'g');

export function pprint(value: Value): Str {
  const out = new StrBuilder();
  write(out, sorted(value), 0, 0, 1);
  return out.build();
}

/** The value with the keys of all its dicts in order. */
function sorted(value: Value): Value {
  if (Array.isArray(value)) return value.map(sorted);
  if (value instanceof Tuple) return new Tuple(value.items.map(sorted));
  if (!(value instanceof Dict)) return value;
  const entries = [...value.entries()].map(([key, item]) => [key, sorted(item)] as const);
  return Dict.of(entries.sort(([a], [b]) => compareKeys(a, b)));
}

function compareKeys(a: Value, b: Value): number {
  try {
    return order('<', a, b) ? -1 : order('<', b, a) ? 1 : 0;
  } catch {
    // What cannot be compared is ordered by the names of its types.
    return `<class '${typeName(a)}'>` < `<class '${typeName(b)}'>` ? -1 : 1;
  }
}

function size(text: Str): number {
  return lengthInPoints(textOf(text));
}

function write(out: StrBuilder, value: Value, indent: number, allowance: number, level: number): void {
  const whole = toRepr(value);
  if (size(whole) <= width - indent - allowance) out.add(whole);
  else if (isStr(value)) writeText(out, asPlain(value), indent, allowance, level);
  else if (value instanceof Dict) writeDict(out, value, indent, allowance, level);
  else if (Array.isArray(value)) writeItems(out, ['[', value, ']'], indent, allowance, level);
  else if (value instanceof Tuple)
    writeItems(out, ['(', value.items, value.items.length === 1 ? ',)' : ')'], indent, allowance, level);
  else out.add(whole);
}

function writeDict(out: StrBuilder, dict: Dict, indent: number, allowance: number, level: number): void {
  out.addText('{', 0);
  let left = dict.size;
  for (const [key, item] of dict.entries()) {
    const name = toRepr(key);
    out.add(name).addText(': ', 0);
    const isLast = --left === 0;
    write(out, item, indent + 1 + size(name) + 2, isLast ? allowance + 1 : 1, level + 1);
    if (!isLast) out.addText(`,\n${' '.repeat(indent + 1)}`, 0);
  }
  out.addText('}', 0);
}

function writeItems(
  out: StrBuilder,
  [open, items, close]: readonly [string, readonly Value[], string],
  indent: number,
  allowance: number,
  level: number,
): void {
  out.addText(open, 0);
  items.forEach((item, i) => {
    const isLast = i === items.length - 1;
    write(out, item, indent + 1, isLast ? allowance + close.length : 1, level + 1);
    if (!isLast) out.addText(`,\n${' '.repeat(indent + 1)}`, 0);
  });
  out.addText(close, 0);
}

/** A long string as several, broken behind its lines and then behind its words; in parentheses at the top. */
function writeText(out: StrBuilder, text: Str, indent: number, allowance: number, level: number): void {
  const isTop = level === 1;
  const [column, reserve] = isTop ? [indent + 1, allowance + 1] : [indent, allowance];
  const lines = splitLines(text, true);
  const chunks: Str[] = [];
  let whole: Str = '';
  lines.forEach((line, i) => {
    const last = i === lines.length - 1 ? reserve : 0;
    whole = toRepr(line);
    if (size(whole) <= width - column - last) chunks.push(whole);
    else chunks.push(...wordChunks(line, width - column, last));
  });
  if (chunks.length === 1) {
    out.add(whole);
    return;
  }
  if (isTop) out.addText('(', 0);
  chunks.forEach((chunk, i) => {
    if (i > 0) out.addText(`\n${' '.repeat(column)}`, 0);
    out.add(chunk);
  });
  if (isTop) out.addText(')', 0);
}

function wordChunks(line: Str, room: number, last: number): Str[] {
  const ends = Array.from(textOf(line).matchAll(PART), (match) => match.index + match[0].length).slice(0, -1);
  const chunks: Str[] = [];
  let from = 0;
  let to = 0;
  ends.forEach((end, i) => {
    const most = room - (i === ends.length - 1 ? last : 0);
    if (size(toRepr(sliceUnits(line, from, end))) > most) {
      if (to > from) chunks.push(toRepr(sliceUnits(line, from, to)));
      from = to;
    }
    to = end;
  });
  if (to > from) chunks.push(toRepr(sliceUnits(line, from, to)));
  return chunks;
}
