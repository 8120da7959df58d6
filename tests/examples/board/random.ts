/**
 * Seeded randomness (sfc32), so that a seed reproduces data and clients exactly. Not for secrets.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #count: number;

  constructor(seed: number) {
    this.#a = seed >>> 0;
    this.#b = Math.floor(seed / 2 ** 32) >>> 0;
    this.#c = 0x9e3779b9;
    this.#count = 1;
    for (let i = 0; i < 12; i++) this.bits(); // mixes the seed into all three words, as its author advises
  }

  /** 32 random bits. */
  bits(): number {
    const out = (this.#a + this.#b + this.#count++) >>> 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) >>> 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + out >>> 0;
    return out;
  }

  /** A number 0 ≤ x < 1. */
  unit(): number {
    return this.bits() / 2 ** 32;
  }

  /** An integer 0 ≤ n < limit. */
  below(limit: number): number {
    return Math.floor(this.unit() * limit);
  }

  /** One of the items. @throws RangeError where there are none. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError("there is nothing to pick from");
    return items[this.below(items.length)] as T;
  }

  /** Negative exponential with a mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.unit());
  }

  /** An independent stream, named by a number. */
  fork(stream: number): Random {
    return new Random(this.bits() * 2 ** 20 + stream);
  }
}
