/** The methods of Python's str. Each keeps the origin of the characters that it keeps. */
import { bind } from './arguments.ts';
import { TemplateError, typeError, valueError } from './errors.ts';
import { formatBraces } from './format.ts';
import { PYTHON_SPACE } from './lexer.ts';
import { getSlice, iterate } from './operators.ts';
import {
  StrBuilder,
  Tagged,
  concat,
  isMarkup,
  isStr,
  joinStr,
  lengthInPoints,
  mapRuns,
  originAt,
  pointIndex,
  pointOffsets,
  points,
  sliceUnits,
  textOf,
} from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { CJK_NUMBERS, OTHER_DIGITS, caseFold, isFinalSigma, titleCase } from './unicodeCase.ts';
import { Dict, Tuple, isInt, typeName } from './values.ts';
import type { Kwargs, Value } from './values.ts';

export type StrMethod = (self: Str, args: Value[], kwargs: Kwargs) => Value;

const SPACE = new RegExp(`[${PYTHON_SPACE}]`);
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;

function isSpaceAt(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if (code > 32 && code < 128) return false;
  return SPACE.test(text[index] ?? '');
}

/** `strip`, `lstrip`, `rstrip`: white space, or any of `chars`. */
export function strip(value: Str, side: 'both' | 'left' | 'right', chars?: Value): Str {
  const text = textOf(value);
  let start = 0;
  let end = text.length;
  if (chars === undefined || chars === null) {
    if (side !== 'right') while (start < end && isSpaceAt(text, start)) start++;
    if (side !== 'left') while (end > start && isSpaceAt(text, end - 1)) end--;
  } else {
    if (!isStr(chars))
      throw typeError(`${{ both: '', left: 'l', right: 'r' }[side]}strip arg must be None or str`);
    const set = new Set(textOf(chars));
    const all = points(text).map(textOf);
    let first = 0;
    let last = all.length;
    if (side !== 'right')
      while (first < last && set.has(all[first] ?? '')) start += all[first++]?.length ?? 0;
    if (side !== 'left') while (last > first && set.has(all[last - 1] ?? '')) end -= all[--last]?.length ?? 0;
  }
  return sliceUnits(value, start, end);
}

function requireText(value: Value | undefined, message: (type: string) => string): string {
  if (value !== undefined && isStr(value)) return textOf(value);
  throw typeError(message(typeName(value ?? null)));
}

const mustBeStr = (type: string): string => `must be str or None, not ${type}`;

function toCount(value: Value | undefined): number {
  if (value === undefined) return -1;
  if (!isInt(value)) throw typeError(`'${typeName(value)}' object cannot be interpreted as an integer`);
  return Number(value);
}

/** `split` and `rsplit`. */
export function split(
  self: Str,
  separator: Value | undefined,
  maxSplit: number,
  isFromRight: boolean,
): Str[] {
  const text = textOf(self);
  const ranges =
    separator === undefined || separator === null
      ? wordRanges(text)
      : partRanges(text, requireText(separator, mustBeStr));
  const limit = maxSplit < 0 ? Infinity : maxSplit;
  if (ranges.length <= limit + (separator === undefined || separator === null ? 0 : 1)) {
    return ranges.map(([start, end]) => sliceUnits(self, start, end));
  }
  const isWords = separator === undefined || separator === null;
  return isFromRight
    ? limitFromRight(self, ranges, limit, isWords)
    : limitFromLeft(self, ranges, limit, isWords);
}

function limitFromLeft(self: Str, ranges: [number, number][], limit: number, isWords: boolean): Str[] {
  const kept = ranges.slice(0, limit).map(([start, end]) => sliceUnits(self, start, end));
  const rest = sliceUnits(
    self,
    ranges[limit]?.[0] ?? 0,
    isWords ? textOf(self).length : (ranges.at(-1)?.[1] ?? 0),
  );
  // Python keeps trailing blanks in the last word of a limited split.
  return [...kept, rest];
}

function limitFromRight(self: Str, ranges: [number, number][], limit: number, isWords: boolean): Str[] {
  const firstKept = ranges.length - limit;
  const kept = ranges.slice(firstKept).map(([start, end]) => sliceUnits(self, start, end));
  const start = isWords ? 0 : (ranges[0]?.[0] ?? 0);
  return [sliceUnits(self, start, ranges[firstKept - 1]?.[1] ?? 0), ...kept];
}

function wordRanges(text: string): [number, number][] {
  const ranges: [number, number][] = [];
  for (let at = 0; at < text.length;) {
    while (at < text.length && isSpaceAt(text, at)) at++;
    const start = at;
    while (at < text.length && !isSpaceAt(text, at)) at++;
    if (at > start) ranges.push([start, at]);
  }
  return ranges;
}

function partRanges(text: string, separator: string): [number, number][] {
  if (separator === '') throw valueError('empty separator');
  const ranges: [number, number][] = [];
  let start = 0;
  for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, start)) {
    ranges.push([start, at]);
    start = at + separator.length;
  }
  ranges.push([start, text.length]);
  return ranges;
}

/** rsplit finds its separators from the right: 'aaa'.rsplit('aa', 1) is ['a', '']. */
function partRangesFromRight(text: string, separator: string): [number, number][] {
  if (separator === '') throw valueError('empty separator');
  const ranges: [number, number][] = [];
  let end = text.length;
  for (let at = text.lastIndexOf(separator); at !== -1 && end >= separator.length;) {
    ranges.unshift([at + separator.length, end]);
    end = at;
    at = end < separator.length ? -1 : text.lastIndexOf(separator, end - separator.length);
  }
  ranges.unshift([0, end]);
  return ranges;
}

function rsplit(self: Str, separator: Value | undefined, maxSplit: number): Str[] {
  if (separator === undefined || separator === null) return split(self, separator, maxSplit, true);
  const ranges = partRangesFromRight(textOf(self), requireText(separator, mustBeStr));
  const limit = maxSplit < 0 ? Infinity : maxSplit;
  if (ranges.length <= limit + 1) return ranges.map(([start, end]) => sliceUnits(self, start, end));
  return limitFromRight(self, ranges, limit, false);
}

export function splitLines(self: Str, keepEnds: boolean): Str[] {
  const text = textOf(self);
  const lines: Str[] = [];
  let start = 0;
  for (const match of text.matchAll(LINE_END)) {
    const end = match.index + match[0].length;
    lines.push(sliceUnits(self, start, keepEnds ? end : match.index));
    start = end;
  }
  if (start < text.length) lines.push(sliceUnits(self, start, text.length));
  return lines;
}

/** `replace`; put-in text of unknown origin takes the origin of what it replaces. */
export function replace(self: Str, oldText: string, newText: Str, count: number): Str {
  const text = textOf(self);
  const limit = count < 0 ? Infinity : count;
  const builder = new StrBuilder();
  let start = 0;
  let done = 0;
  if (oldText === '') {
    for (const point of points(self)) {
      if (done++ < limit) builder.add(newText, originAt(self, start));
      builder.add(point);
      start += textOf(point).length;
    }
    if (done < limit) builder.add(newText, originAt(self, start - 1));
    return builder.build(isMarkup(self));
  }
  for (let at = text.indexOf(oldText); at !== -1 && done < limit; at = text.indexOf(oldText, start)) {
    builder.add(sliceUnits(self, start, at)).add(newText, originAt(self, at));
    start = at + oldText.length;
    done++;
  }
  if (done === 0) return self;
  return builder.add(sliceUnits(self, start, text.length)).build(isMarkup(self));
}

export function capitalize(self: Str): Str {
  const text = textOf(self);
  const first = text.codePointAt(0);
  const end = first === undefined ? 0 : String.fromCodePoint(first).length;
  const head = mapRuns(sliceUnits(self, 0, end), titleCase);
  return concat(head, lower(sliceUnits(self, end, text.length), text));
}

export function upper(self: Str): Str {
  return mapRuns(self, (text) => text.toUpperCase());
}

/** Lower case. A run alone cannot tell a final sigma: `whole` is then lowered in one piece. */
export function lower(self: Str, whole = textOf(self)): Str {
  const lowered = textOf(self).toLowerCase();
  if (self instanceof Tagged && whole.includes('Σ') && lowered.length === self.text.length) {
    return new Tagged(lowered, self.runs, self.isMarkup);
  }
  return mapRuns(self, (text) => text.toLowerCase());
}

const CASED = /\p{Cased}/u;
const TITLE = /\p{Lt}/u;

function title(self: Str): Str {
  const builder = new StrBuilder();
  let isInWord = false;
  let at = 0;
  for (const point of points(self)) {
    const isFinal = isInWord && textOf(point) === 'Σ' && isFinalSigma(textOf(self), at);
    builder.add(mapRuns(point, (c) => (isFinal ? 'ς' : isInWord ? c.toLowerCase() : titleCase(c))));
    isInWord = CASED.test(textOf(point));
    at += textOf(point).length;
  }
  return builder.build(isMarkup(self));
}

function swapCase(self: Str): Str {
  return mapRuns(self, (text) =>
    Array.from(text, (c) =>
      TITLE.test(c) ? c : c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase(),
    ).join(''),
  );
}

export function pad(
  self: Str,
  args: readonly (Value | undefined)[],
  align: 'left' | 'right' | 'center',
): Str {
  const [width, fill] = args;
  const fillText = fill === undefined ? ' ' : textOf(isStr(fill) ? fill : '');
  if (lengthInPoints(fillText) !== 1)
    throw typeError('The fill character must be exactly one character long');
  const missing = toCount(width) - lengthInPoints(textOf(self));
  if (missing <= 0) return self;
  // CPython rounds the left half up only when both the width and what is missing are odd.
  const half = Math.floor(missing / 2) + (missing & toCount(width) & 1);
  const left = { left: 0, right: missing, center: half }[align];
  return new StrBuilder()
    .addText(fillText.repeat(left), 0)
    .add(self)
    .addText(fillText.repeat(missing - left), 0)
    .build(isMarkup(self));
}

function zfill(self: Str, width: Value | undefined): Str {
  const text = textOf(self);
  const missing = toCount(width) - lengthInPoints(text);
  if (missing <= 0) return self;
  const signEnd = /^[+-]/.test(text) ? 1 : 0;
  return new StrBuilder()
    .add(sliceUnits(self, 0, signEnd))
    .addText('0'.repeat(missing), originAt(self, 0))
    .add(sliceUnits(self, signEnd, text.length))
    .build(isMarkup(self));
}

/** The part of self that [start, end) leaves, and where it starts, in UTF-16 units; null where start is past the end. */
function window(
  self: Str,
  start: Value | undefined,
  end: Value | undefined,
): { text: string; from: number } | null {
  const text = textOf(self);
  const size = lengthInPoints(text);
  const offsets = pointOffsets(text);
  const index = (value: Value | undefined, fallback: number): number => {
    if (value === undefined || value === null) return fallback;
    const at = toCount(value);
    return at < 0 ? Math.max(0, at + size) : at;
  };
  const from = index(start, 0);
  const to = Math.min(index(end, size), size);
  if (from > size) return null;
  const unit = (i: number): number => offsets?.[i] ?? Math.min(i, text.length);
  return { text: text.slice(unit(from), Math.max(unit(from), unit(to))), from: unit(from) };
}

function find(self: Str, args: Value[], isFromRight: boolean): number {
  const target = requireText(args[0], (type) => `must be str, not ${type}`);
  const view = window(self, args[1], args[2]);
  if (!view) return -1;
  const at = isFromRight ? view.text.lastIndexOf(target) : view.text.indexOf(target);
  return at === -1 ? -1 : pointIndex(textOf(self), view.from + at);
}

function findOrFail(self: Str, args: Value[], isFromRight: boolean): number {
  const at = find(self, args, isFromRight);
  if (at === -1) throw valueError('substring not found');
  return at;
}

function count(self: Str, args: Value[]): number {
  const target = requireText(args[0], (type) => `must be str, not ${type}`);
  const view = window(self, args[1], args[2]);
  if (!view) return 0;
  return target === '' ? lengthInPoints(view.text) + 1 : view.text.split(target).length - 1;
}

function edgeMatches(name: 'startswith' | 'endswith', self: Str, args: Value[]): boolean {
  const [target = null] = args;
  const view = window(self, args[1], args[2]);
  const matches = (part: Value): boolean => {
    const text = requireText(part, (type) =>
      target instanceof Tuple
        ? `tuple for ${name} must only contain str, not ${type}`
        : `${name} first arg must be str or a tuple of str, not ${type}`,
    );
    if (!view) return false;
    return name === 'startswith' ? view.text.startsWith(text) : view.text.endsWith(text);
  };
  return target instanceof Tuple ? target.items.some(matches) : matches(target);
}

function partition(self: Str, separator: Value | undefined, isFromRight: boolean): Tuple {
  const target = requireText(separator, (type) => `must be str, not ${type}`);
  if (target === '') throw valueError('empty separator');
  const text = textOf(self);
  const at = isFromRight ? text.lastIndexOf(target) : text.indexOf(target);
  // Empty parts too are of the kind of the whole: markup where it is markup.
  const none = sliceUnits(self, 0, 0);
  if (at === -1) return new Tuple(isFromRight ? [none, none, self] : [self, none, none]);
  const end = at + target.length;
  return new Tuple([sliceUnits(self, 0, at), sliceUnits(self, at, end), sliceUnits(self, end, text.length)]);
}

/** `separator.join(items)`: every item has to be a str. */
function join(self: Str, items: Value): Str {
  const parts = iterate(items).map((item, i) => {
    if (isStr(item)) return item;
    throw typeError(`sequence item ${i}: expected str instance, ${typeName(item)} found`);
  });
  return joinStr(self, parts);
}

function expandTabs(self: Str, size: Value | undefined): Str {
  const width = size === undefined ? 8 : toCount(size);
  const builder = new StrBuilder();
  let column = 0;
  for (const point of points(self)) {
    const char = textOf(point);
    if (char === '\t') {
      const spaces = width > 0 ? width - (column % width) : 0;
      builder.add(mapRuns(point, () => ' '.repeat(spaces)));
      column += spaces;
    } else {
      builder.add(point);
      column = char === '\n' || char === '\r' ? 0 : column + 1;
    }
  }
  return builder.build(isMarkup(self));
}

function translate(self: Str, table: Value | undefined): Str {
  if (!(table instanceof Dict)) throw typeError('translate needs a dict from code points to replacements');
  const builder = new StrBuilder();
  for (const point of points(self)) {
    const found = table.get(textOf(point).codePointAt(0) ?? 0);
    if (found === undefined) builder.add(point);
    else if (isStr(found)) builder.add(found, originAt(point, 0));
    else if (isInt(found)) builder.addText(String.fromCodePoint(Number(found)), originAt(point, 0));
    else if (found !== null) throw typeError('character mapping must return integer, None or str');
  }
  return builder.build(isMarkup(self));
}

const every =
  (pattern: RegExp): StrMethod =>
  (self) =>
    pattern.test(textOf(self));

/** At least one cased character, and all of them upper (or lower). */
export function isUpper(text: string): boolean {
  return /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
}

export function isLower(text: string): boolean {
  return /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
}

function isTitle(text: string): boolean {
  let isInWord = false;
  let hasCased = false;
  for (const char of text) {
    const isUp = /[\p{Uppercase}\p{Lt}]/u.test(char);
    const isDown = /\p{Lowercase}/u.test(char);
    if ((isUp && isInWord) || (isDown && !isInWord)) return false;
    isInWord = isUp || isDown;
    hasCased ||= isInWord;
  }
  return hasCased;
}

const affix =
  (name: 'prefix' | 'suffix'): StrMethod =>
  (self, args) => {
    const target = requireText(args[0], (type) => `remove${name}() argument must be str, not ${type}`);
    const text = textOf(self);
    if (target === '') return self;
    if (name === 'prefix')
      return text.startsWith(target) ? sliceUnits(self, target.length, text.length) : self;
    return text.endsWith(target) ? sliceUnits(self, 0, text.length - target.length) : self;
  };

const splitMethod =
  (name: 'split' | 'rsplit'): StrMethod =>
  (self, args, kwargs) => {
    const [separator, maxSplit] = bind(name, ['sep', 'maxsplit'], 0, args, kwargs);
    const max = toCount(maxSplit);
    return name === 'split' ? split(self, separator, max, false) : rsplit(self, separator, max);
  };

const stripMethod =
  (name: string, side: 'both' | 'left' | 'right'): StrMethod =>
  (self, args, kwargs) =>
    strip(self, side, bind(name, ['chars'], 0, args, kwargs)[0]);

export const STR_METHODS = new Map<string, StrMethod>([
  ['strip', stripMethod('strip', 'both')],
  ['lstrip', stripMethod('lstrip', 'left')],
  ['rstrip', stripMethod('rstrip', 'right')],
  ['split', splitMethod('split')],
  ['rsplit', splitMethod('rsplit')],
  [
    'splitlines',
    (self, args, kwargs) => splitLines(self, bind('splitlines', ['keepends'], 0, args, kwargs)[0] === true),
  ],
  ['partition', (self, args) => partition(self, args[0], false)],
  ['rpartition', (self, args) => partition(self, args[0], true)],
  ['startswith', (self, args) => edgeMatches('startswith', self, args)],
  ['endswith', (self, args) => edgeMatches('endswith', self, args)],
  [
    'replace',
    (self, args, kwargs) => {
      const [oldText, newText, times] = bind('replace', ['old', 'new', 'count'], 2, args, kwargs);
      const from = requireText(oldText, (type) => `replace() argument 1 must be str, not ${type}`);
      requireText(newText, (type) => `replace() argument 2 must be str, not ${type}`);
      return replace(self, from, isStr(newText) ? newText : '', toCount(times));
    },
  ],
  ['join', (self, args) => join(self, args[0] ?? null)],
  ['upper', (self) => upper(self)],
  ['lower', (self) => lower(self)],
  ['casefold', (self) => mapRuns(self, caseFold)],
  ['title', (self) => title(self)],
  ['capitalize', (self) => capitalize(self)],
  ['swapcase', (self) => swapCase(self)],
  ['find', (self, args) => find(self, args, false)],
  ['rfind', (self, args) => find(self, args, true)],
  ['index', (self, args) => findOrFail(self, args, false)],
  ['rindex', (self, args) => findOrFail(self, args, true)],
  ['count', (self, args) => count(self, args)],
  ['format', (self, args, kwargs) => formatBraces(self, args, kwargs)],
  [
    'format_map',
    (self, args) => {
      if (!(args[0] instanceof Dict)) throw typeError('format_map() takes exactly one mapping');
      return formatBraces(
        self,
        [],
        new Map([...args[0].entries()].map(([k, v]) => [isStr(k) ? textOf(k) : '', v] as const)),
      );
    },
  ],
  ['isdigit', every(new RegExp(`^[\\p{Nd}${OTHER_DIGITS}]+$`, 'u'))],
  ['isdecimal', every(/^\p{Nd}+$/u)],
  ['isnumeric', every(new RegExp(`^[\\p{N}${CJK_NUMBERS}]+$`, 'u'))],
  ['isalpha', every(/^\p{L}+$/u)],
  ['isalnum', every(/^[\p{L}\p{N}]+$/u)],
  ['isspace', every(new RegExp(`^[${PYTHON_SPACE}]+$`))],
  ['isascii', every(/^[\u0000-\u007f]*$/)],
  ['isidentifier', every(/^[\p{XID_Start}_]\p{XID_Continue}*$/u)],
  ['isprintable', every(/^(?:[^\p{C}\p{Z}]| )*$/u)],
  ['isupper', (self) => isUpper(textOf(self))],
  ['islower', (self) => isLower(textOf(self))],
  ['istitle', (self) => isTitle(textOf(self))],
  ['removeprefix', affix('prefix')],
  ['removesuffix', affix('suffix')],
  ['ljust', (self, args) => pad(self, args, 'left')],
  ['rjust', (self, args) => pad(self, args, 'right')],
  ['center', (self, args) => pad(self, args, 'center')],
  ['zfill', (self, args) => zfill(self, args[0])],
  ['expandtabs', (self, args) => expandTabs(self, args[0])],
  ['translate', (self, args) => translate(self, args[0])],
  [
    'encode',
    () => {
      throw new TemplateError('TypeError', 'bytes are not supported in templates');
    },
  ],
]);

/** Reverses by code points. */
export function reverse(value: Str): Str {
  const reversed = getSlice(value, { start: null, stop: null, step: -1 });
  return isStr(reversed) ? reversed : value;
}
