/**
 * A small deterministic generator (sfc32, Chris Doty-Humphrey's PractRand; seeded through splitmix32).
 * The same seed gives the same sequence on every platform and in every version: plans are reproduced from it.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** `seed` is any integer up to 2^53; `stream` gives an independent sequence of the same seed (an epoch, say). */
  constructor(seed: number, stream = 0) {
    if (!Number.isSafeInteger(seed)) throw new RangeError(`seed must be an integer, not ${seed}`);
    this.#a = splitmix32(seed >>> 0);
    this.#b = splitmix32((Math.floor(seed / 2 ** 32) ^ 0x9e3779b9) >>> 0);
    this.#c = splitmix32((stream ^ 0x85ebca6b) >>> 0);
    for (let i = 0; i < 12; i++) this.uint32();
  }

  /** The next integer in 0 … 2^32 - 1. */
  uint32(): number {
    const result = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) | 0;
    return result >>> 0;
  }

  /** A number in [0, 1). */
  uniform(): number {
    return this.uint32() / 2 ** 32;
  }

  /** An integer in 0 … `bound` - 1, each equally likely (Lemire's rejection would differ by less than 2^-11). */
  below(bound: number): number {
    return Math.floor(((this.uint32() >>> 5) * 2 ** 26 + (this.uint32() >>> 6)) * 2 ** -53 * bound);
  }

  /** A number from the standard normal distribution (Box and Muller). */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  /** One element; the array must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** Shuffles in place (Fisher and Yates) and returns its argument. */
  shuffle<T extends Int32Array | unknown[]>(items: T): T {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [items[i], items[j]] = [items[j], items[i]];
    }
    return items;
  }
}

function splitmix32(seed: number): number {
  let z = (seed + 0x9e3779b9) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) | 0;
}
