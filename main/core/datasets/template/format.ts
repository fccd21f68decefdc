/** Python's two ways to format: `'%s' % value` and `'{}'.format(value)`. */
import { TemplateError, typeError, valueError } from './errors.ts';
import { getItem, isNumber, missingAttribute } from './operators.ts';
import { floatRepr, toRepr, toStr } from './print.ts';
import {
  StrBuilder,
  escapeHtml,
  isMarkup,
  isStr,
  lengthInPoints,
  pointOffsets,
  sliceUnits,
  textOf,
} from './taggedString.ts';
import type { Str } from './taggedString.ts';
import { Dict, Float, Tuple, Undefined, isInt, orElse, toFloat, typeName } from './values.ts';
import type { Kwargs, Value } from './values.ts';

const PERCENT =
  /%(?:\((?<key>[^)]*)\))?(?<flags>[-+ #0]*)(?<width>\*|\d+)?(?:\.(?<precision>\*|\d+)?)?[hlL]?(?<type>[\s\S])?/g;

/** `format % values`. */
export function formatPercent(format: Str, values: Value): Str {
  const text = textOf(format);
  const args = values instanceof Tuple ? values.items : [values];
  let used = 0;
  const next = (): Value => {
    const value = args[used++];
    if (value === undefined) throw typeError('not enough arguments for format string');
    return value;
  };
  const builder = new StrBuilder();
  let last = 0;
  let hasKeys = false;
  for (const match of text.matchAll(PERCENT)) {
    builder.add(sliceUnits(format, last, match.index));
    last = match.index + match[0].length;
    const groups = match.groups ?? {};
    const type = groups['type'];
    if (type === undefined) throw valueError('incomplete format');
    if (type === '%') {
      builder.addText('%', 0);
      continue;
    }
    if (groups['key'] !== undefined) hasKeys = true;
    const value = groups['key'] === undefined ? undefined : keyed(values, groups['key']);
    const spec = percentSpec(groups, type, match[0].includes('.'), next);
    builder.add(escapeFor(format, percentValue(orElse(value, next), spec)));
  }
  builder.add(sliceUnits(format, last, text.length));
  const isMapping = values instanceof Dict || values instanceof Undefined || Array.isArray(values);
  if (!hasKeys && used < args.length && !isMapping) {
    throw typeError('not all arguments converted during string formatting');
  }
  return builder.build(isMarkup(format));
}

function escapeFor(format: Str, value: Str): Str {
  return isMarkup(format) ? escapeHtml(value) : value;
}

function keyed(values: Value, key: string): Value {
  if (!(values instanceof Dict)) throw typeError('format requires a mapping');
  const value = values.get(key);
  if (value === undefined) throw new TemplateError('KeyError', `'${key}'`);
  return value;
}

interface Spec {
  readonly type: string;
  readonly align: string;
  readonly fill: string;
  readonly sign: string;
  readonly isAlternate: boolean;
  readonly width: number;
  readonly precision: number | undefined;
  readonly grouping: string;
}

function percentSpec(
  groups: Record<string, string | undefined>,
  type: string,
  hasDot: boolean,
  next: () => Value,
): Spec {
  const number = (part: string | undefined): number | undefined =>
    part === '*' ? Number(next()) : part === undefined ? undefined : Number(part);
  const flags = groups['flags'] ?? '';
  const width = number(groups['width']) ?? 0;
  const precision = number(groups['precision']) ?? (hasDot ? 0 : undefined);
  const isLeft = flags.includes('-') || width < 0;
  const isZero = flags.includes('0') && !isLeft;
  return {
    type,
    align: isLeft ? '<' : isZero ? '=' : '>',
    fill: isZero ? '0' : ' ',
    sign: flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '',
    isAlternate: flags.includes('#'),
    width: Math.abs(width),
    precision,
    grouping: '',
  };
}

function percentValue(value: Value, spec: Spec): Str {
  const { type } = spec;
  if (type === 's' || type === 'r' || type === 'a') {
    const text = cut(type === 's' ? toStr(value) : toRepr(value), spec.precision);
    return pad(text, spec, spec.align === '=' ? '>' : spec.align, ' ');
  }
  if (type === 'c') {
    const char = isInt(value) ? String.fromCodePoint(Number(value)) : isStr(value) ? value : undefined;
    if (char === undefined || lengthInPoints(textOf(char)) !== 1) throw typeError('%c requires int or char');
    return pad(char, spec, spec.align, ' ');
  }
  if (/[diuxXo]/.test(type)) {
    const isWhole = isInt(value) || (value instanceof Float && /[diu]/.test(type));
    if (!isWhole) {
      const what = /[diu]/.test(type) ? 'a real number' : 'an integer';
      throw typeError(`%${type} format: ${what} is required, not ${typeName(value)}`);
    }
    return formatInt(BigInt(isInt(value) ? value : Math.trunc(value.value)), {
      ...spec,
      type: /[iu]/.test(type) ? 'd' : type,
    });
  }
  if (/[eEfFgG]/.test(type)) {
    if (!isNumber(value)) throw typeError(`must be real number, not ${typeName(value)}`);
    return formatFloat(toFloat(value), spec);
  }
  throw valueError(`unsupported format character '${type}' (0x${(type.codePointAt(0) ?? 0).toString(16)})`);
}

function cut(value: Str, precision: number | undefined): Str {
  if (precision === undefined) return value;
  const text = textOf(value);
  return sliceUnits(value, 0, pointOffsets(text)?.[precision] ?? Math.min(precision, text.length));
}

function pad(value: Str, spec: Spec, align: string, fill = spec.fill): Str {
  const missing = spec.width - lengthInPoints(textOf(value));
  if (missing <= 0) return value;
  const left = align === '<' ? 0 : align === '^' ? Math.floor(missing / 2) : missing;
  return new StrBuilder()
    .addText(fill.repeat(left), 0)
    .add(value)
    .addText(fill.repeat(missing - left), 0)
    .build();
}

function padNumber(sign: string, digits: string, spec: Spec): Str {
  if (spec.align !== '=') return pad(sign + digits, spec, spec.align);
  const missing = Math.max(0, spec.width - sign.length - digits.length);
  return sign + spec.fill.repeat(missing) + digits;
}

function signOf(isNegative: boolean, spec: Spec): string {
  return isNegative ? '-' : spec.sign === '-' ? '' : spec.sign;
}

function group(digits: string, separator: string): string {
  return separator === '' ? digits : digits.replace(/\B(?=(?:\d{3})+(?!\d))/g, separator);
}

function formatInt(value: bigint, spec: Spec): Str {
  const size = value < 0n ? -value : value;
  const bases: Record<string, number> = { x: 16, X: 16, o: 8, b: 2 };
  const prefixes: Record<string, string> = { x: '0x', X: '0X', o: '0o', b: '0b' };
  let digits = size.toString(bases[spec.type] ?? 10);
  if (spec.type === 'X') digits = digits.toUpperCase();
  if (spec.precision !== undefined) digits = digits.padStart(spec.precision, '0');
  const prefix = spec.isAlternate ? (prefixes[spec.type] ?? '') : '';
  return padNumber(signOf(value < 0n, spec) + prefix, group(digits, spec.grouping), spec);
}

function formatFloat(value: number, spec: Spec): Str {
  const isNegative = value < 0 || Object.is(value, -0);
  const size = Math.abs(value);
  let digits: string;
  if (!Number.isFinite(size)) digits = Number.isNaN(size) ? 'nan' : 'inf';
  else digits = finiteDigits(size, spec);
  if (spec.type === 'E' || spec.type === 'G' || spec.type === 'F') digits = digits.toUpperCase();
  const [whole = '', rest] = digits.split('.');
  const grouped =
    spec.grouping === '' ? digits : group(whole, spec.grouping) + (rest === undefined ? '' : `.${rest}`);
  return padNumber(signOf(isNegative, spec), grouped, spec);
}

function finiteDigits(size: number, spec: Spec): string {
  const type = spec.type.toLowerCase();
  const precision = spec.precision ?? 6;
  if (type === '%') return `${fixed(size * 100, precision)}%`;
  if (type === 'f') return fixed(size, precision);
  if (type === 'e') return exponential(size, precision);
  if (type === '' && spec.precision === undefined) return floatRepr(size);
  const significant = precision === 0 ? 1 : precision;
  const exponent = Number(size.toExponential(Math.min(significant - 1, 100)).split('e')[1]);
  const limit = type === '' ? significant - 1 : significant;
  const isSmall = exponent >= -4 && exponent < limit;
  const text = isSmall
    ? fixed(size, Math.max(0, significant - 1 - exponent))
    : exponential(size, significant - 1);
  if (spec.isAlternate) return text;
  const trimmed = text.replace(/(\.\d*?)0+(?=e|$)/, '$1').replace(/\.(?=e|$)/, '');
  return type === '' && isSmall && !trimmed.includes('.') ? `${trimmed}.0` : trimmed;
}

/** toFixed, also from 1e21 on, where JavaScript's gives an exponent. */
export function fixed(value: number, precision: number): string {
  if (value < 1e21) return value.toFixed(Math.min(precision, 100));
  const whole = BigInt(value).toString();
  return precision === 0 ? whole : `${whole}.${'0'.repeat(precision)}`;
}

function exponential(value: number, precision: number): string {
  const [digits = '', exponent = '0'] = value.toExponential(Math.min(precision, 100)).split('e');
  const size = Math.abs(Number(exponent));
  return `${digits}e${Number(exponent) < 0 ? '-' : '+'}${String(size).padStart(2, '0')}`;
}

const FORMAT_SPEC =
  /^(?:(?<fill>[\s\S])?(?<align>[<>=^]))?(?<sign>[-+ ])?(?<alternate>#)?(?<zero>0)?(?<width>\d+)?(?<grouping>[,_])?(?:\.(?<precision>\d+))?(?<type>[bcdeEfFgGnosxX%])?$/u;

/** `format(value, spec)` for strings and numbers. */
export function formatSpec(value: Value, specText: string): Str {
  if (specText === '') return toStr(value);
  const groups = FORMAT_SPEC.exec(specText)?.groups;
  if (!groups) throw valueError('Invalid format specifier');
  const isNumeric = isNumber(value);
  const isZero = groups['zero'] !== undefined;
  const spec: Spec = {
    type: groups['type'] ?? '',
    align: groups['align'] ?? (isZero && isNumeric ? '=' : isNumeric ? '>' : '<'),
    fill: groups['fill'] ?? (isZero ? '0' : ' '),
    sign: groups['sign'] ?? '',
    isAlternate: groups['alternate'] !== undefined,
    width: Number(groups['width'] ?? 0),
    precision: groups['precision'] === undefined ? undefined : Number(groups['precision']),
    grouping: groups['grouping'] ?? '',
  };
  if (isStr(value)) {
    if (spec.type !== '' && spec.type !== 's') throw unknownCode(spec.type, value);
    return pad(cut(value, spec.precision), spec, spec.align);
  }
  if (typeof value === 'boolean' && spec.type === '') return pad(toStr(value), spec, spec.align);
  if (isInt(value) && /^[bcdnoxX]?$/.test(spec.type)) return formatInt(BigInt(value), spec);
  if (isNumeric && /^[eEfFgGn%]?$/.test(spec.type)) return formatFloat(toFloat(value), spec);
  if (isNumeric) throw unknownCode(spec.type, value);
  throw typeError(`unsupported format string passed to ${typeName(value)}.__format__`);
}

function unknownCode(code: string, value: Value): TemplateError {
  return valueError(`Unknown format code '${code}' for object of type '${typeName(value)}'`);
}

const FIELD =
  /\{\{|\}\}|\{(?<name>[^{}!:]*)(?:!(?<conversion>[rsa]))?(?::(?<spec>(?:[^{}]|\{[^{}]*\})*))?\}|[{}]/g;

/** `format.format(*args, **kwargs)`. */
export function formatBraces(format: Str, args: readonly Value[], kwargs: Kwargs): Str {
  const text = textOf(format);
  const builder = new StrBuilder();
  let last = 0;
  let automatic = 0;
  const field = (name: string): Value => {
    const [first = '', ...path] = name.split(/(?=[.[])/);
    const index = first === '' ? automatic++ : Number(first);
    let value = Number.isNaN(index) ? kwargs.get(first) : args[index];
    if (value === undefined) {
      if (Number.isNaN(index)) throw new TemplateError('KeyError', `'${first}'`);
      throw new TemplateError(
        'IndexError',
        `Replacement index ${index} out of range for positional args tuple`,
      );
    }
    for (const step of path) value = followPath(value, step);
    return value;
  };
  for (const match of text.matchAll(FIELD)) {
    builder.add(sliceUnits(format, last, match.index));
    last = match.index + match[0].length;
    if (match[0] === '{{' || match[0] === '}}') {
      builder.add(sliceUnits(format, match.index, match.index + 1));
      continue;
    }
    if (match[0] === '{') throw valueError("Single '{' encountered in format string");
    if (match[0] === '}') throw valueError("Single '}' encountered in format string");
    const value = field(match.groups?.['name'] ?? '');
    const spec = (match.groups?.['spec'] ?? '').replace(/\{([^{}]*)\}/g, (_, name: string) =>
      textOf(toStr(field(name))),
    );
    const conversion = match.groups?.['conversion'];
    const converted = conversion === undefined ? value : conversion === 's' ? toStr(value) : toRepr(value);
    builder.add(escapeFor(format, formatSpec(converted, spec)));
  }
  builder.add(sliceUnits(format, last, text.length));
  return builder.build(isMarkup(format));
}

function followPath(value: Value, step: string): Value {
  const isIndex = step.startsWith('[');
  const key = isIndex ? step.slice(1, -1) : step.slice(1);
  const found = getItem(value, isIndex && /^\d+$/.test(key) ? Number(key) : key);
  return orElse(found, () => missingAttribute(value, key));
}
