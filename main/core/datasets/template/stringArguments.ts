/** What the methods of str take, with Python's own words where it is something else. */
import { typeError } from './errors.ts';
import { isStr, textOf } from './taggedString.ts';
import { isInt, typeName } from './values.ts';
import type { Value } from './values.ts';

export function requireText(value: Value | undefined, message: (type: string) => string): string {
  if (value !== undefined && isStr(value)) return textOf(value);
  throw typeError(message(typeName(value ?? null)));
}

export const mustBeStr = (type: string): string => `must be str or None, not ${type}`;

export function toCount(value: Value | undefined): number {
  if (value === undefined) return -1;
  if (!isInt(value)) throw typeError(`'${typeName(value)}' object cannot be interpreted as an integer`);
  return Number(value);
}
