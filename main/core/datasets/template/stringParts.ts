/** Methods of Python's str that cut it: strip, split, lines, partition. */
import { typeError, valueError } from './errors.ts';
import { PYTHON_SPACE } from './lexer.ts';
import { mustBeStr, requireText } from './stringArguments.ts';
import { isStr, points, sliceUnits, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Tuple } from './values.ts';
import type { Value } from './values.ts';

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

export function rsplit(self: Str, separator: Value | undefined, maxSplit: number): Str[] {
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

export function partition(self: Str, separator: Value | undefined, isFromRight: boolean): Tuple {
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
