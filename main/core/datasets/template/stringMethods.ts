/** The methods of Python's str. Each keeps the origin of the characters that it keeps. */
import { bind } from './arguments.ts';
import { TemplateError, typeError } from './errors.ts';
import { formatBraces } from './format.ts';
import { PYTHON_SPACE } from './lexer.ts';
import { getSlice, iterate } from './operators.ts';
import { requireText, toCount } from './stringArguments.ts';
import { capitalize, isLower, isTitle, isUpper, lower, swapCase, title, upper } from './stringCase.ts';
import { partition, rsplit, split, splitLines, strip } from './stringParts.ts';
import { count, edgeMatches, find, findOrFail } from './stringSearch.ts';
import {
  StrBuilder,
  isMarkup,
  isStr,
  joinStr,
  lengthInPoints,
  mapRuns,
  originAt,
  points,
  sliceUnits,
  textOf,
} from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { CJK_NUMBERS, OTHER_DIGITS, caseFold } from './unicodeCase.ts';
import { Dict, isInt, typeName } from './values.ts';
import type { Kwargs, Value } from './values.ts';

export type StrMethod = (self: Str, args: Value[], kwargs: Kwargs) => Value;

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
