/** A number with its noun: `1 row`, `1,204 rows`. */
export function counted(value: number, noun: string, nouns = `${noun}s`): string {
  return `${value.toLocaleString('en-US', { maximumFractionDigits: 0 })} ${value === 1 ? noun : nouns}`;
}
