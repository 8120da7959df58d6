/**
 * The names of a packet, which has each once, in the order of their first use; an entry that uses a name has the name's
 * place in that list.
 *
 * NL1 The list has one form: each name is listed once, is used, and is used first in that order.
 */
import { CodecError, type Reader, type Writer } from "./codec.ts";

/** Names of a packet that is being written. */
export class Names {
  readonly #places = new Map<string, number>();

  add(name: string): void {
    if (!this.#places.has(name)) this.#places.set(name, this.#places.size);
  }

  place(name: string): number {
    return this.#places.get(name) ?? 0;
  }

  write(w: Writer): void {
    w.list([...this.#places.keys()], (name) => w.text(name));
  }
}

/** Names of a packet that is being read. */
export class ReadNames {
  readonly #names: readonly string[];
  #used = 0;

  /** Reads the list. @throws CodecError where a name is listed twice, or has a line break. */
  constructor(r: Reader) {
    this.#names = r.list(() => r.text());
    if (new Set(this.#names).size !== this.#names.length) throw new CodecError("a packet lists a name twice");
    if (this.#names.some((name) => name.includes("\n"))) throw new CodecError("a name has a line break");
  }

  /**
   * Returns the name of a place.
   *
   * @throws CodecError where no name has that place, or one before it was not used yet.
   */
  at(place: number): string {
    const name = this.#names[place];
    if (name === undefined || place > this.#used) throw new CodecError("a name is not in the packet's list");
    this.#used = Math.max(this.#used, place + 1);
    return name;
  }

  /** Ends the reading. @throws CodecError where a name was not used. */
  end(): void {
    if (this.#used !== this.#names.length) throw new CodecError("a packet lists a name that it does not use"); // NL1
  }
}
