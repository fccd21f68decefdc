// How numbers are written everywhere: fixed decimals down a column, units beside the value, never a jump in width.
export { duration } from '../main/contract/duration.ts';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** 12,345 */
export const integer = (value: number) => whole.format(value);

/** Fixed decimals with thousands separators and a true minus sign, never −0.0; a dash for what is not there. */
export function decimal(value: number | undefined, digits: number): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const size = Math.abs(value).toLocaleString('en-US', options);
  return value < 0 && /[1-9]/.test(size) ? `−${size}` : size;
}

/** 950, 12.3 k, 4.56 M, 1.20 B */
export function compactCount(value: number): string {
  if (value < 999.5) return whole.format(value);
  const [divisor, unit] = value < 999_950 ? [1e3, 'k'] : value < 999_950_000 ? [1e6, 'M'] : [1e9, 'B'];
  const scaled = value / divisor;
  return `${scaled.toFixed(scaled < 10 ? 2 : 1)} ${unit}`;
}

/** 512 B, 1.5 KiB, 32.4 GiB */
export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let scaled = value;
  let unit = 0;
  while (scaled >= 1024 && unit < units.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? String(scaled) : scaled.toFixed(1)} ${units[unit] ?? ''}`;
}

/** now, 5 min ago, 3 h ago, yesterday, 27 Nov, 27 Nov 2025 */
export function ago(atMs: number, nowMs: number): string {
  const minutes = Math.floor((nowMs - atMs) / 60_000);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${String(minutes)} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${String(hours)} h ago`;
  const date = new Date(atMs);
  if (hours < 48) return 'yesterday';
  const isThisYear = date.getFullYear() === new Date(nowMs).getFullYear();
  return date.toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    ...(!isThisYear && { year: 'numeric' }),
  });
}

/** 2.0e-5 */
export const scientific = (value: number) => (value === 0 ? '0' : value.toExponential(1));

export const percent = (share: number, digits = 1) => `${decimal(share * 100, digits)} %`;

/** Messages of the core as sentences: a capital at the front, a full stop at the end. */
export function sentence(message: string): string {
  const end = /[.!?]$/.test(message) ? '' : '.';
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${end}`;
}
