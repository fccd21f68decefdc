/** Where Python's Unicode is not JavaScript's: title case, case folding, and which characters are digits or cased. */

/** Titlecase of one character, as `str.title` begins a word. */
export function titleCase(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  // Digraphs as dž have a form of their own, Georgian has none.
  if (code >= 0x1c4 && code <= 0x1cc) return String.fromCharCode(code - ((code - 0x1c4) % 3) + 1);
  if (code >= 0x1f1 && code <= 0x1f3) return '\u01f2';
  if (code >= 0x10d0 && code <= 0x10ff) return char;
  const up = char.toUpperCase();
  if (code < 0x1f80 || code > 0x1fff || !up.endsWith('\u0399')) {
    return up.length > char.length && code !== 0x149 ? up.charAt(0) + up.slice(1).toLowerCase() : up;
  }
  // Greek with a subscript iota keeps it as a sign, in one character where there is one.
  if (code < 0x1fb0) return String.fromCharCode(code | 8);
  const base = up.slice(0, -1);
  return { '': up, Α: '\u1fbc', Η: '\u1fcc', Ω: '\u1ffc' }[base] ?? `${base}\u0345`;
}

/** `str.casefold`. */
export function caseFold(text: string): string {
  return Array.from(text, foldOne).join('');
}

function foldOne(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x80) return char.toLowerCase();
  if (code === 0x131) return char;
  if (code === 0x1e9e) return 'ss';
  // Cherokee folds to its capitals.
  if (code >= 0x13a0 && code <= 0x13f5) return char;
  if (code >= 0x13f8 && code <= 0x13fd) return String.fromCharCode(code - 8);
  if (code >= 0xab70 && code <= 0xabbf) return String.fromCharCode(code - 0x97d0);
  return Array.from(char.toUpperCase(), (c) => c.toLowerCase()).join('');
}

/** Whether the capital sigma at `at` (a UTF-16 unit) ends a word, where it becomes ς in lower case. */
export function isFinalSigma(text: string, at: number): boolean {
  return (
    /\p{Cased}\p{Case_Ignorable}*$/u.test(text.slice(0, at)) &&
    !/^\p{Case_Ignorable}*\p{Cased}/u.test(text.slice(at + 1))
  );
}

/** Characters beyond \p{Nd} that `isdigit` takes, for a character class. */
export const OTHER_DIGITS =
  '²³¹⁰⁴-⁹₀-₉①-⑨\\u1369-\\u1371\\u19da\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788' +
  '\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}';

/** Letters that are numbers too: `isnumeric` takes them. */
export const CJK_NUMBERS =
  '㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖百肆萬貮貳贰阡陆陌陸零' +
  '\\uf96b\\uf973\\uf978\\uf9b2\\uf9d1\\uf9d3\\uf9fd\\u{20001}\\u{20064}\\u{200e2}\\u{20121}\\u{2092a}\\u{20983}\\u{2098c}\\u{2099c}\\u{20aea}\\u{20afd}' +
  '\\u{20b19}\\u{22390}\\u{22998}\\u{23b1b}\\u{2626d}\\u{2f890}';
