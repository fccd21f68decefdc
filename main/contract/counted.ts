/** A number with its noun: `1 row`, `1,204 rows`. */
export function counted(value: number, noun: string, nouns = `${noun}s`): string {
  return `${value.toLocaleString('en-US', { maximumFractionDigits: 0 })} ${value === 1 ? noun : nouns}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(words: string[]): string {
  const last = words.at(-1) ?? '';
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${last}` : last;
}
