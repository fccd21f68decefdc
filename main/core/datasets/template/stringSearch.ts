/** Methods of Python's str that look for another one in it, between code points. */
import { valueError } from './errors.ts';
import { requireText, toCount } from './stringArguments.ts';
import { lengthInPoints, pointIndex, pointOffsets, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Tuple } from './values.ts';
import type { Value } from './values.ts';

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

export function find(self: Str, args: Value[], isFromRight: boolean): number {
  const target = requireText(args[0], (type) => `must be str, not ${type}`);
  const view = window(self, args[1], args[2]);
  if (!view) return -1;
  const at = isFromRight ? view.text.lastIndexOf(target) : view.text.indexOf(target);
  return at === -1 ? -1 : pointIndex(textOf(self), view.from + at);
}

export function findOrFail(self: Str, args: Value[], isFromRight: boolean): number {
  const at = find(self, args, isFromRight);
  if (at === -1) throw valueError('substring not found');
  return at;
}

export function count(self: Str, args: Value[]): number {
  const target = requireText(args[0], (type) => `must be str, not ${type}`);
  const view = window(self, args[1], args[2]);
  if (!view) return 0;
  return target === '' ? lengthInPoints(view.text) + 1 : view.text.split(target).length - 1;
}

export function edgeMatches(name: 'startswith' | 'endswith', self: Str, args: Value[]): boolean {
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
