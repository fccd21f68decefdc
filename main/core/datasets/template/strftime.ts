/** Python's `datetime.strftime` in the C locale, local time. */

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

function two(value: number): string {
  return String(value).padStart(2, '0');
}

function dayOfYear(date: Date): number {
  return (
    Math.round(
      (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 1)) /
        86_400_000,
    ) + 1
  );
}

const DIRECTIVES: Record<string, (date: Date) => string> = {
  a: (d) => (DAYS[d.getDay()] ?? '').slice(0, 3),
  A: (d) => DAYS[d.getDay()] ?? '',
  b: (d) => (MONTHS[d.getMonth()] ?? '').slice(0, 3),
  h: (d) => (MONTHS[d.getMonth()] ?? '').slice(0, 3),
  B: (d) => MONTHS[d.getMonth()] ?? '',
  c: (d) => strftime('%a %b %e %H:%M:%S %Y', d),
  d: (d) => two(d.getDate()),
  D: (d) => strftime('%m/%d/%y', d),
  e: (d) => String(d.getDate()).padStart(2, ' '),
  f: (d) => String(d.getMilliseconds() * 1000).padStart(6, '0'),
  F: (d) => strftime('%Y-%m-%d', d),
  H: (d) => two(d.getHours()),
  I: (d) => two(d.getHours() % 12 || 12),
  j: (d) => String(dayOfYear(d)).padStart(3, '0'),
  m: (d) => two(d.getMonth() + 1),
  M: (d) => two(d.getMinutes()),
  n: () => '\n',
  p: (d) => (d.getHours() < 12 ? 'AM' : 'PM'),
  R: (d) => strftime('%H:%M', d),
  s: (d) => String(Math.floor(d.getTime() / 1000)),
  S: (d) => two(d.getSeconds()),
  t: () => '\t',
  T: (d) => strftime('%H:%M:%S', d),
  u: (d) => String(d.getDay() || 7),
  U: (d) => two(Math.floor((dayOfYear(d) + 6 - d.getDay()) / 7)),
  w: (d) => String(d.getDay()),
  W: (d) => two(Math.floor((dayOfYear(d) + 6 - ((d.getDay() + 6) % 7)) / 7)),
  x: (d) => strftime('%m/%d/%y', d),
  X: (d) => strftime('%H:%M:%S', d),
  y: (d) => two(d.getFullYear() % 100),
  Y: (d) => String(d.getFullYear()),
  z: () => '',
  Z: () => '',
  '%': () => '%',
};

/** Unknown directives stay as written; `-` before a letter takes leading zeros and blanks off. */
export function strftime(format: string, date: Date): string {
  return format.replace(/%(-?)([A-Za-z%])/g, (whole, flag: string, letter: string) => {
    const text = DIRECTIVES[letter]?.(date);
    if (text === undefined) return whole;
    return flag === '-' ? text.replace(/^[0 ]+(?=.)/, '') : text;
  });
}
