import { parsePythonJson } from '../pythonJson.ts';
import { Dict, type Value } from '../template/values.ts';

/** Thrown where JSON.parse loses what Python keeps. */
class InexactError extends Error {}

/**
 * One JSON text with Python's types. JSON.parse reads most rows, ten times faster; those with numbers or
 * integer-like keys, and those that it refuses, go to the exact reader.
 * @throws {JsonError} with Python's wording
 */
export function parseValue(text: string): Value {
  try {
    return convert(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof InexactError || error instanceof SyntaxError)) throw error;
    return parsePythonJson(text);
  }
}

function convert(value: unknown): Value {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object') throw new InexactError();
  const dict = new Dict();
  for (const key of Object.keys(value)) {
    if (isDigit(key.charCodeAt(0))) throw new InexactError();
    dict.set(key, convert((value as Record<string, unknown>)[key]));
  }
  return dict;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
