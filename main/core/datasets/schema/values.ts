import { Dict, Float, type Value } from '../template/values.ts';

/** What a value is, in the words of an error message. */
export function describeType(value: Value | undefined): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (typeof value === 'boolean') return 'a boolean';
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Dict) return 'an object';
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof Float
    ? 'a number'
    : 'no JSON';
}

/** Calls `visit` with every string of a value, keys included, and puts what it returns in the string's place. */
export function mapStrings(value: Value, visit: (text: string) => string): Value {
  if (typeof value === 'string') return visit(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, visit));
  if (!(value instanceof Dict)) return value;
  return Dict.of(
    Array.from(value.entries(), ([key, item]) => [mapStrings(key, visit), mapStrings(item, visit)]),
  );
}

/** Takes out the null fields of objects, at any depth: Parquet's unified structs add them to every row. */
export function pruneNulls(value: Value, onPruned: () => void): Value {
  if (Array.isArray(value)) return value.map((item) => pruneNulls(item, onPruned));
  if (!(value instanceof Dict)) return value;
  const pruned = new Dict();
  for (const [key, item] of value.entries()) {
    if (item === null) onPruned();
    else pruned.set(key, pruneNulls(item, onPruned));
  }
  return pruned;
}
