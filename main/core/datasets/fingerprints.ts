/** How much of a part may be used: beyond it a look-up takes long. */
const fullest = 0.8;
const numParts = 64;
const firstSlots = 16;

/**
 * A map of 52-bit keys to 32-bit values for tens of millions of entries: 12 bytes a slot outside the JavaScript heap,
 * where a Map would take four times that and ends at 16.7 million. It grows part by part, so that the old and the new
 * table are never both there whole.
 */
export class Fingerprints {
  private readonly parts = Array.from({ length: numParts }, () => new Part(firstSlots));

  /** The value that the key has already; undefined where it had none and has `value` now. */
  put(key: number, value: number): number | undefined {
    return (this.parts[key % numParts] as Part).put(Math.floor(key / numParts) + 1, value);
  }
}

/** Open addressing, linear probing; key 0 is an empty slot. */
class Part {
  private keys: Float64Array;
  private values: Uint32Array;
  private size = 0;

  constructor(slots: number) {
    this.keys = new Float64Array(slots);
    this.values = new Uint32Array(slots);
  }

  put(key: number, value: number): number | undefined {
    const slot = this.slotOf(key);
    if (this.keys[slot] === key) return this.values[slot];
    this.keys[slot] = key;
    this.values[slot] = value;
    if (++this.size > this.keys.length * fullest) this.grow();
    return undefined;
  }

  private slotOf(key: number): number {
    const { keys } = this;
    let slot = key % keys.length;
    while (keys[slot] !== 0 && keys[slot] !== key) slot = slot + 1 === keys.length ? 0 : slot + 1;
    return slot;
  }

  private grow(): void {
    const { keys, values } = this;
    this.keys = new Float64Array(Math.ceil(keys.length * 1.5));
    this.values = new Uint32Array(this.keys.length);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] ?? 0;
      if (key === 0) continue;
      const slot = this.slotOf(key);
      this.keys[slot] = key;
      this.values[slot] = values[i] ?? 0;
    }
  }
}
