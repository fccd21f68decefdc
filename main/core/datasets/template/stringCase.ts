/** Methods of Python's str that change or tell upper and lower case, by Unicode's rules. */
import { StrBuilder, Tagged, concat, isMarkup, mapRuns, points, sliceUnits, textOf } from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { isFinalSigma, titleCase } from './unicodeCase.ts';

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

export function title(self: Str): Str {
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

export function swapCase(self: Str): Str {
  return mapRuns(self, (text) =>
    Array.from(text, (c) =>
      TITLE.test(c) ? c : c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase(),
    ).join(''),
  );
}

/** At least one cased character, and all of them upper (or lower). */
export function isUpper(text: string): boolean {
  return /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
}

export function isLower(text: string): boolean {
  return /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
}

export function isTitle(text: string): boolean {
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
