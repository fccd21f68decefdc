import type { ExampleTokens } from '../../../main/contract/datasets.ts';

/**
 * Positions of the tokens that begin a match: by their id where a number is given, else by the text that they and
 * those after them make, whatever its case.
 */
export function findTokens({ ids, bytes, byteOffsets }: ExampleTokens, wanted: string): number[] {
  if (wanted === '') return [];
  const byId = /^\d+$/.test(wanted) ? Number(wanted) : undefined;
  const positions = new Set<number>();
  if (byId !== undefined)
    for (const [position, id] of ids.entries()) if (id === byId) positions.add(position);
  // One character a byte keeps places: a match at a byte is a match at its token.
  const text = toLatin(bytes).toLowerCase();
  const needle = toLatin(new TextEncoder().encode(wanted)).toLowerCase();
  let token = 0;
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
    while ((byteOffsets[token + 1] ?? Infinity) <= at) token += 1;
    positions.add(token);
  }
  return [...positions].sort((a, b) => a - b);
}

function toLatin(bytes: Uint8Array): string {
  return new TextDecoder('latin1').decode(bytes);
}
