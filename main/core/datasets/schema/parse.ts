import { MAX_DEPTH, parsePythonJson } from '../pythonJson.ts';
import { Dict, type Value } from '../template/values.ts';

/** Thrown where JSON.parse loses what Python keeps, or reads what Python refuses. */
class InexactError extends Error {}

/**
 * One JSON text with Python's types. JSON.parse reads most rows, ten times faster; those with numbers or
 * integer-like keys, and those that it refuses, go to the exact reader.
 * @throws {JsonError} with Python's wording
 */
export function parseValue(text: string): Value {
  try {
    return convert(JSON.parse(text), 0);
  } catch (error) {
    if (!(error instanceof InexactError || error instanceof SyntaxError)) throw error;
    return parsePythonJson(text);
  }
}

function convert(value: unknown, depth: number): Value {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value !== 'object' || depth === MAX_DEPTH) throw new InexactError();
  if (Array.isArray(value)) return value.map((item) => convert(item, depth + 1));
  const dict = new Dict();
  for (const key of Object.keys(value)) {
    if (isDigit(key.charCodeAt(0))) throw new InexactError();
    dict.set(key, convert((value as Record<string, unknown>)[key], depth + 1));
  }
  return dict;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
