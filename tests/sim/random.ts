/**
 * Seeded randomness: the only source of it in a simulated run.
 *
 * N1  A stream is a function of its seed and its name alone: draws on one stream never shift another, so that a
 *     change in one part of the simulator leaves the draws of all others where they were.
 */

/** A stream of draws (xoshiro128**). */
export class Draws {
  readonly #state: [number, number, number, number];
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
    let hash = 0x811c9dc5;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
    const word = () => {
      hash = (hash + 0x9e3779b9) | 0;
      let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
      return (mixed ^ (mixed >>> 16)) >>> 0;
    };
    this.#state = [word(), word(), word(), word() | 1];
  }

  /** An independent stream. */
  fork(name: string): Draws {
    return new Draws(`${this.#name}/${name}`);
  }

  /** 32 bits. */
  word(): number {
    const s = this.#state;
    const scrambled = Math.imul(s[1], 5);
    const out = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = (s[3] << 11) | (s[3] >>> 21);
    return out;
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.word() / 0x1_0000_0000;
  }

  /** An integer with least ≤ n ≤ greatest. */
  integer(least: number, greatest: number): number {
    return least + Math.floor(this.unit() * (greatest - least + 1));
  }

  /** Uniform in [least, greatest). */
  between(least: number, greatest: number): number {
    return least + this.unit() * (greatest - least);
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** One of a list that is not empty. */
  pick<T>(list: readonly T[]): T {
    const index = Math.floor(this.unit() * list.length);
    if (index >= list.length) throw new RangeError("cannot pick from an empty list");
    return list[index] as T;
  }

  /** One of the names, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.unit() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return this.pick(entries)[0];
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    const out = new Uint8Array(length);
    for (let i = 0; i < length; i++) out[i] = this.word() & 0xff;
    return out;
  }
}
