/** Jinja's filters on text. Source: jinja2/filters.py 3.1. */
import { bind } from './arguments.ts';
import { TemplateError, typeError, valueError } from './errors.ts';
import type { Filter } from './filters.ts';
import { toFloat } from './values.ts';
import { binary, failUndefined, isNumber, iterate, length } from './operators.ts';
import { toRepr, toStr } from './print.ts';
import { PYTHON_SPACE } from './lexer.ts';
import { capitalize, lower, upper } from './stringCase.ts';
import { pad, replace } from './stringMethods.ts';
import { splitLines, strip } from './stringParts.ts';
import {
  StrBuilder,
  asMarkup,
  asPlain,
  concat,
  escapeHtml,
  isMarkup,
  isStr,
  joinStr,
  lengthInPoints,
  mapRuns,
  pointOffsets,
  sliceUnits,
  textOf,
} from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Dict, Undefined, isInt, isTrue, requireStr, typeName } from './values.ts';
import type { Value } from './values.ts';

function textFilter(
  name: string,
  names: readonly string[],
  apply: (value: Str, ...args: (Value | undefined)[]) => Value,
  numRequired = 0,
): [string, Filter] {
  return [
    name,
    (value, args, kwargs) => apply(toStr(value), ...bind(name, names, numRequired, args, kwargs)),
  ];
}

/** A filter that calls a method of str, which other types do not have. */
function strictTextFilter(...[name, names, apply]: Parameters<typeof textFilter>): [string, Filter] {
  return [
    name,
    (value, args, kwargs) => {
      if (value instanceof Undefined) failUndefined(value);
      if (!isStr(value)) {
        if (name === 'indent' && !Array.isArray(value)) binary('+', value, '\n');
        throw new TemplateError(
          'AttributeError',
          `'${typeName(value)}' object has no attribute 'splitlines'`,
        );
      }
      return apply(value, ...bind(name, names, 0, args, kwargs));
    },
  ];
}

function number(value: Value | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  if (!isInt(value)) throw typeError(`'${typeName(value)}' object cannot be interpreted as an integer`);
  return Number(value);
}

function title(value: Str): Str {
  const builder = new StrBuilder();
  const text = textOf(value);
  for (const match of text.matchAll(/[-\s({[<]+|[^-\s({[<]+/g)) {
    const end = match.index + match[0].length;
    const firstEnd = match.index + (String.fromCodePoint(match[0].codePointAt(0) ?? 0).length || 1);
    builder
      .add(upper(sliceUnits(value, match.index, firstEnd)))
      .add(lower(sliceUnits(value, firstEnd, end), text));
  }
  return builder.build();
}

function indent(
  value: Str,
  width: Value | undefined,
  first: Value | undefined,
  blank: Value | undefined,
): Str {
  const text = width !== undefined && isStr(width) ? width : ' '.repeat(Math.max(0, number(width, 4)));
  const indention = isMarkup(value) ? asMarkup(text) : text;
  const lines = splitLines(concat(value, isMarkup(value) ? asMarkup('\n') : '\n'), false);
  const isBlankIndented = isTrue(blank ?? false);
  const indented = lines.map((line, i) =>
    i > 0 && (isBlankIndented || textOf(line) !== '') ? concat(indention, line) : line,
  );
  const joined = joinStr(isMarkup(value) ? asMarkup('\n') : '\n', indented);
  return isTrue(first ?? false) ? concat(indention, joined) : joined;
}

function truncate(value: Value, [size, killWords, end, leeway]: (Value | undefined)[]): Value {
  const ending = end === undefined ? '...' : requireStr(end, 'end');
  const limit = number(size, 255);
  const kept = limit - lengthInPoints(textOf(ending));
  if (kept < 0) {
    const message = `expected length >= ${lengthInPoints(textOf(ending))}, got ${limit}`;
    throw new TemplateError('AssertionError', message);
  }
  if (length(value) <= limit + number(leeway ?? undefined, 5)) return value;
  const text = requireStr(value, 'the text to truncate');
  const cut = sliceUnits(text, 0, pointOffsets(textOf(text))?.[kept] ?? kept);
  if (isTrue(killWords ?? false)) return concat(cut, ending);
  const at = textOf(cut).lastIndexOf(' ');
  return concat(at === -1 ? cut : sliceUnits(cut, 0, at), ending);
}

/** textwrap.wrap with white space kept as it is, on each line of the text. */
function wordwrap(
  value: Str,
  width: Value | undefined,
  breakLong: Value | undefined,
  glue: Value | undefined,
  onHyphens: Value | undefined,
): Str {
  const separator = glue === undefined || glue === null ? '\n' : requireStr(glue, 'wrapstring');
  const options = {
    width: number(width, 79),
    breaksLong: isTrue(breakLong ?? true),
    onHyphens: isTrue(onHyphens ?? true),
  };
  return joinStr(
    separator,
    splitLines(value, false).map((line) => joinStr(separator, wrapLine(line, options))),
  );
}

interface WrapOptions {
  readonly width: number;
  readonly breaksLong: boolean;
  readonly onHyphens: boolean;
}

const W = '[\\p{L}\\p{N}_]';
const LETTER = '[\\p{L}_]';
const PUNCTUATED = `(?:${W}|[!"'&.,?])`;
/** textwrap's chunks: blanks, em-dashes, and words broken behind the hyphens that stand between letters. */
const CHUNKS = new RegExp(
  `[\\t-\\r ]+|(?<=${PUNCTUATED})-{2,}(?=${W})|[^\\t-\\r ]+?(?:` +
    `-(?:(?<=${LETTER}{2}-)|(?<=${LETTER}-${LETTER}-))(?=${LETTER}-?${LETTER})|` +
    `(?=[\\t-\\r ]|$)|(?<=${PUNCTUATED})(?=-{2,}${W}))`,
  'gu',
);

function wrapLine(line: Str, options: WrapOptions): Str[] {
  const pattern = options.onHyphens ? CHUNKS : /[\t-\r ]+|[^\t-\r ]+/g;
  const chunks = Array.from(textOf(line).matchAll(pattern), (match) => match[0]);
  const lines: Str[] = [];
  let at = 0;
  while (chunks.length > 0) {
    if (lines.length > 0 && isBlank(chunks[0])) at += chunks.shift()?.length ?? 0;
    const taken = takeLine(chunks, options);
    const size = taken.join('').length;
    const end = at + size - (isBlank(taken.at(-1)) ? (taken.at(-1)?.length ?? 0) : 0);
    if (end > at) lines.push(sliceUnits(line, at, end));
    at += size;
  }
  return lines;
}

function isBlank(chunk: string | undefined): boolean {
  return chunk !== undefined && chunk.trim() === '';
}

/** Takes the chunks of one line off the front. */
function takeLine(chunks: string[], options: WrapOptions): string[] {
  const taken: string[] = [];
  let used = 0;
  for (
    let next = chunks[0];
    next !== undefined && used + lengthInPoints(next) <= options.width;
    next = chunks[0]
  ) {
    taken.push(next);
    used += lengthInPoints(next);
    chunks.shift();
  }
  const next = chunks[0];
  if (next === undefined || lengthInPoints(next) <= options.width) return taken;
  if (options.breaksLong) {
    const room = options.width < 1 ? 1 : options.width - used;
    const roomUnits = pointOffsets(next)?.[room] ?? room;
    const hyphen = options.onHyphens ? next.slice(0, roomUnits).lastIndexOf('-') : -1;
    const end = hyphen > 0 && /[^-]/.test(next.slice(0, hyphen)) ? hyphen + 1 : roomUnits;
    taken.push(next.slice(0, end));
    chunks[0] = next.slice(end);
  } else if (taken.length === 0) {
    taken.push(next);
    chunks.shift();
  }
  return taken;
}

function urlQuote(value: Value, isQuery: boolean): Str {
  return mapRuns(asPlain(toStr(value)), (text) => {
    const quoted = encodeURIComponent(text.toWellFormed()).replace(
      /[!'()*]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
    return isQuery ? quoted.replaceAll('%20', '+') : quoted.replaceAll('%2F', '/');
  });
}

function urlencode(value: Value): Value {
  const isScalar = isStr(value) || value === null || isNumber(value);
  if (isScalar) return urlQuote(value, false);
  const pairs = value instanceof Dict ? [...value.entries()] : iterate(value).map(pairOf);
  return joinStr(
    '&',
    pairs.map(([key = null, item = null]) => joinStr('=', [urlQuote(key, true), urlQuote(item, true)])),
  );
}

function pairOf(value: Value): readonly Value[] {
  const items = iterate(value);
  if (items.length === 2) return items;
  throw valueError(
    items.length > 2
      ? 'too many values to unpack (expected 2)'
      : `not enough values to unpack (expected 2, got ${items.length})`,
  );
}

const SPACES = new RegExp(`[${PYTHON_SPACE}]+`);

function striptags(value: Str): Str {
  const text = textOf(value)
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/<[\s\S]*?>/g, '')
    .split(SPACES)
    .filter(Boolean)
    .join(' ');
  return text.replace(
    /&(?:amp|lt|gt|#39|#34|quot);/g,
    (entity) =>
      ({ '&amp;': '&', '&lt;': '<', '&gt;': '>', '&#39;': "'", '&#34;': '"', '&quot;': '"' })[entity] ??
      entity,
  );
}

function xmlattr(value: Value, autospace: Value | undefined): Value {
  if (!(value instanceof Dict)) {
    throw new TemplateError('AttributeError', `'${typeName(value)}' object has no attribute 'items'`);
  }
  const parts: Str[] = [];
  for (const [key, item] of value.entries()) {
    if (item === null || typeName(item) === 'Undefined') continue;
    parts.push(
      new StrBuilder()
        .add(asPlain(escapeHtml(toStr(key))))
        .addText('="', 0)
        .add(asPlain(escapeHtml(toStr(item))))
        .addText('"', 0)
        .build(),
    );
  }
  const joined = joinStr(' ', parts);
  return isTrue(autospace ?? true) && parts.length > 0 ? concat(' ', joined) : joined;
}

function fileSize(value: Value, binaryUnits: Value | undefined): Value {
  const isBinary = isTrue(binaryUnits ?? false);
  if (!isNumber(value) && !isStr(value)) {
    throw typeError(`float() argument must be a string or a real number, not '${typeName(value)}'`);
  }
  const bytes = isNumber(value) ? toFloat(value) : Number(textOf(value).trim() || NaN);
  if (Number.isNaN(bytes)) throw valueError(`could not convert string to float: ${textOf(toRepr(value))}`);
  const base = isBinary ? 1024 : 1000;
  if (bytes === 1) return '1 Byte';
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const prefixes = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];
  const power = Math.min(
    prefixes.length,
    Math.max(1, prefixes.findIndex((_, i) => bytes < base ** (i + 2)) + 1 || prefixes.length),
  );
  const prefix = prefixes[power - 1] ?? 'Y';
  return `${(bytes / base ** power).toFixed(1)} ${isBinary ? `${prefix.toUpperCase()}iB` : `${prefix}B`}`;
}

export const STRING_FILTERS: readonly [string, Filter][] = [
  textFilter('capitalize', [], (value) => capitalize(value)),
  textFilter('center', ['width'], (value, width) => pad(value, [width ?? 80], 'center')),
  textFilter('forceescape', [], (value) => escapeHtml(asPlain(value))),
  strictTextFilter('indent', ['width', 'first', 'blank'], indent),
  textFilter('lower', [], (value) => lower(value)),
  textFilter('upper', [], (value) => upper(value)),
  textFilter('title', [], (value) => title(value)),
  textFilter('string', [], (value) => value),
  textFilter('striptags', [], (value) => striptags(value)),
  textFilter(
    'replace',
    ['old', 'new', 'count'],
    (value, oldText, newText, count) =>
      replace(
        asPlain(value),
        textOf(toStr(oldText ?? '')),
        asPlain(toStr(newText ?? '')),
        count === undefined || count === null ? -1 : number(count, -1),
      ),
    2,
  ),
  textFilter('trim', ['chars'], (value, chars) => strip(value, 'both', chars)),
  [
    'truncate',
    (value, args, kwargs) =>
      truncate(value, bind('truncate', ['length', 'killwords', 'end', 'leeway'], 0, args, kwargs)),
  ],
  textFilter('wordcount', [], (value) => textOf(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0),
  strictTextFilter('wordwrap', ['width', 'break_long_words', 'wrapstring', 'break_on_hyphens'], wordwrap),
  ['urlencode', (value) => urlencode(value)],
  ['xmlattr', (value, args, kwargs) => xmlattr(value, bind('xmlattr', ['autospace'], 0, args, kwargs)[0])],
  [
    'filesizeformat',
    (value, args, kwargs) => fileSize(value, bind('filesizeformat', ['binary'], 0, args, kwargs)[0]),
  ],
];
