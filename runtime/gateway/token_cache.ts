/**
 * Opened tokens by their text: a token that left here comes back soon, mostly here, and opening it again costs 8 µs
 * where a look-up costs 0.1.
 *
 * TC1  Bounded, and never rebuilt: a text has one set of WAYS places, by its last characters, which are those of a
 *      random tag; a new entry takes the place of the oldest in its set. (A Map with an entry more for every request is
 *      rebuilt all the time, and each old table keeps what came after it from being collected young.)
 * TC2  Only an equal text finds an entry.
 */

/** An entry that is found by its text. */
interface Texted {
  readonly text: string;
}

/** Number of sets: sessions that are active within seconds fit, at some 700 bytes each. */
const SETS = 8_192;
/**
 * Entries of a set: with a thousand sessions that take turns, one in a hundred and fifty finds its token pushed out.
 */
const WAYS = 2;

/** Cache of entries by their texts. */
export class TokenCache<T extends Texted> {
  readonly #places: (T | null)[] = Array.from({ length: SETS * WAYS }, () => null);

  get(text: string): T | undefined {
    const at = setOf(text);
    for (let way = at; way < at + WAYS; way++) {
      const found = this.#places[way];
      if (found !== null && found?.text === text) return found; // TC2
    }
    return undefined;
  }

  /** Adds an entry, or puts it in the place of the one with its text. */
  put(entry: T): void {
    const at = setOf(entry.text);
    for (let way = at; way < at + WAYS; way++) {
      if (this.#places[way]?.text === entry.text) {
        this.#places[way] = entry;
        return;
      }
    }
    for (let way = at + WAYS - 1; way > at; way--) this.#places[way] = this.#places[way - 1] ?? null;
    this.#places[at] = entry;
  }
}

/** Returns the first place of a text's set. */
function setOf(text: string): number {
  let hash = 0;
  // Six bits a character; the very last holds fewer.
  for (let i = Math.max(0, text.length - 5); i < text.length; i++) hash = hash * 61 + text.charCodeAt(i) | 0;
  return (hash >>> 0) % SETS * WAYS;
}
