/**
 * State that all sessions share and that can't be made to refuse a change: it is compared at the end of each turn, and
 * put back before anything of the turn leaves (MF2, module_state.ts).
 */

/** A thing that is compared. */
export interface PutBack {
  readonly path: string;
  /** Reports whether it differs from what it was when it was loaded, and puts it back. */
  changed(): boolean;
}

/** Compares a value that can be set. */
export class Setting implements PutBack {
  readonly #loaded: unknown;

  constructor(
    readonly path: string,
    readonly get: () => unknown,
    readonly set: (value: unknown) => void,
  ) {
    this.#loaded = get();
  }

  changed(): boolean {
    if (Object.is(this.get(), this.#loaded)) return false;
    this.set(this.#loaded);
    return true;
  }
}

/** Compares bytes, by words where they are aligned. */
export class Bytes implements PutBack {
  readonly #bytes: Uint8Array;
  readonly #kept: Uint8Array;
  readonly #words: Int32Array;
  readonly #keptWords: Int32Array;

  constructor(readonly path: string, buffer: ArrayBuffer) {
    this.#bytes = new Uint8Array(buffer);
    this.#kept = this.#bytes.slice();
    const words = this.#bytes.length >> 2;
    this.#words = new Int32Array(buffer, 0, words);
    this.#keptWords = new Int32Array(this.#kept.buffer, 0, words);
  }

  changed(): boolean {
    if (this.#bytes.length !== this.#kept.length || this.#isSame()) return false;
    this.#bytes.set(this.#kept);
    return true;
  }

  #isSame(): boolean {
    const { length } = this.#keptWords;
    for (let i = 0; i < length; i++) if (this.#words[i] !== this.#keptWords[i]) return false;
    for (let i = length << 2; i < this.#kept.length; i++) {
      if (this.#bytes[i] !== this.#kept[i]) return false;
    }
    return true;
  }
}
