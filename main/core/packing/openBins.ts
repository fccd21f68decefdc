/**
 * The open bins of best fit, found by what they have left: a list of bins for each amount, and over the amounts a
 * tree of bits, 32 to a word, that finds the smallest non-empty amount ≥ n by looking at one word a level.
 */
export class OpenBins {
  readonly #head: Int32Array; // (budget + 1): the last bin put there, -1 where none is
  readonly #next: Int32Array; // (bins): the bin under it in the same list
  readonly #levels: Uint32Array[] = []; // bit i of level 0: amount i has a bin; of level k: word i of k - 1 is not 0

  /** Amounts are 0 … `budget`, bins 0 … `capacity` - 1. */
  constructor(budget: number, capacity: number) {
    this.#head = new Int32Array(budget + 1).fill(-1);
    this.#next = new Int32Array(capacity);
    let words = budget + 1;
    do {
      words = Math.ceil(words / 32);
      this.#levels.push(new Uint32Array(words));
    } while (words > 1);
  }

  add(bin: number, left: number): void {
    this.#next[bin] = this.#head[left] as number;
    this.#head[left] = bin;
    for (const level of this.#levels) {
      const word = left >>> 5;
      level[word] = (level[word] as number) | (1 << (left & 31));
      left = word;
    }
  }

  /** The smallest amount ≥ `needed` that a bin has left, -1 where none has. */
  fitting(needed: number): number {
    let at = needed;
    for (let k = 0; k < this.#levels.length; k++) {
      const bits = at >>> 5 < (this.#levels[k] as Uint32Array).length ? this.#bitsFrom(k, at) : 0;
      if (bits !== 0) {
        at = (at & ~31) | lowestBit(bits);
        for (let below = k - 1; below >= 0; below--) {
          at = (at << 5) | lowestBit((this.#levels[below] as Uint32Array)[at] as number);
        }
        return at;
      }
      at = (at >>> 5) + 1;
    }
    return -1;
  }

  /** Takes the bin last put among those with `left` left. */
  take(left: number): number {
    const bin = this.#head[left] as number;
    const under = this.#next[bin] as number;
    this.#head[left] = under;
    if (under < 0) this.#clear(left);
    return bin;
  }

  #bitsFrom(level: number, at: number): number {
    return ((this.#levels[level] as Uint32Array)[at >>> 5] as number) & (-1 << (at & 31));
  }

  #clear(at: number): void {
    for (const level of this.#levels) {
      const word = at >>> 5;
      level[word] = (level[word] as number) & ~(1 << (at & 31));
      if (level[word] !== 0) return;
      at = word;
    }
  }
}

function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}
