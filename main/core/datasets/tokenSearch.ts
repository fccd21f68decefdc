import type { TokenTable } from './tokenise/tokenTable.ts';

/** What a token is to a needle. */
const role = { unknown: 0, none: 1, holds: 2, mayBegin: 3 } as const;

/**
 * Finds bytes in tokens without joining them: nearly every token can neither hold the needle nor begin it, which one
 * look into a table tells. ASCII letters of either case are the same.
 */
export class TokenSearch {
  private readonly needle: Buffer;
  private readonly table: TokenTable;
  /** By token id, one of `role`. */
  private readonly bytes: (Buffer | undefined)[] = [];
  private roles = new Uint8Array(1 << 18);

  /** @param needle lowered */
  constructor(needle: Buffer, table: TokenTable) {
    this.needle = needle;
    this.table = table;
  }

  /** Whether tokens `from` … `to` (exclusive) hold the needle. */
  isIn(ids: Int32Array, from: number, to: number): boolean {
    const { roles } = this;
    for (let t = from; t < to; t++) {
      const known = roles[ids[t] as number];
      if (known === role.none) continue;
      const found = known === role.holds || known === role.mayBegin ? known : this.learn(ids[t] as number);
      if (found === role.holds) return true;
      if (found === role.mayBegin && this.beginsAt(ids, t, to)) return true;
    }
    return false;
  }

  private beginsAt(ids: Int32Array, from: number, to: number): boolean {
    const { needle } = this;
    const first = this.bytesOf(ids[from] as number);
    for (let at = Math.max(0, first.length - needle.length + 1); at < first.length; at++) {
      let matched = matchingBytes(needle, 0, first, at);
      if (at + matched < first.length) continue;
      for (let t = from + 1; t < to && matched < needle.length; t++) {
        const bytes = this.bytesOf(ids[t] as number);
        const more = matchingBytes(needle, matched, bytes, 0);
        matched += more;
        if (more < bytes.length) break;
      }
      if (matched === needle.length) return true;
    }
    return false;
  }

  private learn(id: number): number {
    const bytes = this.bytesOf(id);
    const { needle } = this;
    let found: number = bytes.includes(needle) ? role.holds : role.none;
    for (
      let at = Math.max(0, bytes.length - needle.length + 1);
      found === role.none && at < bytes.length;
      at++
    ) {
      if (needle.subarray(0, bytes.length - at).equals(bytes.subarray(at))) found = role.mayBegin;
    }
    if (id >= this.roles.length) {
      const larger = new Uint8Array(2 * id);
      larger.set(this.roles);
      this.roles = larger;
    }
    this.roles[id] = found;
    return found;
  }

  private bytesOf(id: number): Buffer {
    return (this.bytes[id] ??= lowered(this.table.bytesOf(id)));
  }
}

/** How many bytes of the needle from `begin` on stand in `bytes` from `at` on, one after the other. */
function matchingBytes(needle: Buffer, begin: number, bytes: Buffer, at: number): number {
  let count = 0;
  while (
    begin + count < needle.length &&
    at + count < bytes.length &&
    needle[begin + count] === bytes[at + count]
  )
    count += 1;
  return count;
}

export function lowered(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  for (let i = 0; i < copy.length; i++) {
    const byte = copy[i] as number;
    if (byte >= 65 && byte <= 90) copy[i] = byte + 32;
  }
  return copy;
}
