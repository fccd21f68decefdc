import { usage } from './command.ts';

/** `K=V` options as a record of texts. */
export function parsePairs(option: string, pairs: string[] | undefined): Record<string, string> {
  const entries = (pairs ?? []).map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1) throw usage(`--${option} takes NAME=VALUE, not '${pair}'`);
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  return Object.fromEntries(entries);
}

/** The same with values as JSON where they are JSON: `true`, `3`, `"text"`, `[1]`; any other value is text. */
export function parseValues(option: string, pairs: string[] | undefined): Record<string, unknown> {
  const entries = Object.entries(parsePairs(option, pairs)).map(
    ([name, text]) => [name, parseValue(text)] as const,
  );
  return Object.fromEntries(entries);
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return /^(True|False)$/.test(text) ? text === 'True' : text;
  }
}
