/** Jinja's filters on text. Source: jinja2/filters.py 3.1. */
import { bind } from './arguments.ts';
import { TemplateError, typeError } from './errors.ts';
import type { Filter } from './filters.ts';
import { toFloat } from './values.ts';
import { isNumber, iterate } from './operators.ts';
import { toStr } from './print.ts';
import { capitalize, lower, pad, replace, splitLines, strip, upper } from './stringMethods.ts';
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
import { Dict, Tuple, isInt, isTrue, requireStr, typeName } from './values.ts';
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

function truncate(
  value: Str,
  size: Value | undefined,
  killWords: Value | undefined,
  end: Value | undefined,
  leeway: Value | undefined,
): Str {
  const text = textOf(value);
  const ending = end === undefined ? '...' : requireStr(end, 'end');
  const limit = number(size, 255);
  const kept = limit - lengthInPoints(textOf(ending));
  if (kept < 0)
    throw new TemplateError(
      'AssertionError',
      `expected length >= ${lengthInPoints(textOf(ending))}, got ${limit}`,
    );
  if (lengthInPoints(text) <= limit + number(leeway ?? undefined, 5)) return value;
  const cut = sliceUnits(value, 0, pointOffsets(text)?.[kept] ?? kept);
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

const WORDS_AND_HYPHENS = /\s+|[^\s\w]*\w+[^0-9\W]-(?=\w+[^0-9\W])|\S+?(?=\s|$)/g;

function wrapLine(line: Str, options: { width: number; breaksLong: boolean; onHyphens: boolean }): Str[] {
  const chunks = [...textOf(line).matchAll(options.onHyphens ? WORDS_AND_HYPHENS : /\s+|\S+/g)]
    .map((m) => m[0])
    .reverse();
  const lines: Str[] = [];
  let at = 0;
  while (chunks.length > 0) {
    if (lines.length > 0 && (chunks.at(-1) ?? '').trim() === '') at += chunks.pop()?.length ?? 0;
    const start = at;
    let used = 0;
    for (
      let next = chunks.at(-1);
      next !== undefined && used + next.length <= options.width;
      next = chunks.at(-1)
    ) {
      used += next.length;
      chunks.pop();
    }
    const next = chunks.at(-1);
    if (next !== undefined && next.length > options.width) {
      const room = options.width < 1 ? 1 : options.width - used;
      const taken = options.breaksLong ? room : used === 0 ? next.length : 0;
      if (taken > 0) {
        chunks.pop();
        if (taken < next.length) chunks.push(next.slice(taken));
        used += taken;
      }
    }
    at = start + used;
    const text = textOf(line).slice(start, at);
    const end =
      text.trimEnd() === '' || text.trimEnd().length === text.length ? at : start + text.trimEnd().length;
    if (text.trim() !== '') lines.push(sliceUnits(line, start, end));
    if (used === 0 && chunks.length > 0 && (chunks.at(-1) ?? '').trim() !== '') break;
  }
  return lines;
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
  const pairs =
    value instanceof Dict
      ? [...value.entries()]
      : iterate(value).map((pair) => (pair instanceof Tuple ? pair.items : iterate(pair)));
  return joinStr(
    '&',
    pairs.map(([key = null, item = null]) => joinStr('=', [urlQuote(key, true), urlQuote(item, true)])),
  );
}

function striptags(value: Str): Str {
  const text = textOf(value)
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/<[\s\S]*?>/g, '')
    .split(/\s+/)
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
  if (!(value instanceof Dict)) throw typeError(`xmlattr needs a mapping, not ${typeName(value)}`);
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
  const bytes = isNumber(value) ? toFloat(value) : Number(textOf(toStr(value)));
  if (Number.isNaN(bytes)) throw new TemplateError('ValueError', 'could not convert string to float');
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
  textFilter('indent', ['width', 'first', 'blank'], indent),
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
  textFilter('truncate', ['length', 'killwords', 'end', 'leeway'], truncate),
  textFilter('wordcount', [], (value) => textOf(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0),
  textFilter('wordwrap', ['width', 'break_long_words', 'wrapstring', 'break_on_hyphens'], wordwrap),
  ['urlencode', (value) => urlencode(value)],
  ['xmlattr', (value, args, kwargs) => xmlattr(value, bind('xmlattr', ['autospace'], 0, args, kwargs)[0])],
  [
    'filesizeformat',
    (value, args, kwargs) => fileSize(value, bind('filesizeformat', ['binary'], 0, args, kwargs)[0]),
  ],
];
