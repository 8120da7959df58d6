/**
 * Cache of the heads of an engine's rows, bounded, in two generations. A hit in the old generation moves to the young
 * one; a full young one becomes the old one, and the former old one is dropped.
 */
import type { Key } from "../../store/model/key.ts";
import type { RowHead } from "./denokv_layout.ts";

/** Entries of a generation: about 20 MB with keys of 60 bytes; beyond it, overwrites cost a read each. */
const GENERATION_MAX = 100_000;

/** Heads by key; null is known absence. */
export class HeadCache {
  #young = new Map<Key, RowHead | null>();
  #old = new Map<Key, RowHead | null>();

  /** Returns a row's head; null: there is no such row; undefined: not known. */
  get(key: Key): RowHead | null | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: Key, head: RowHead | null): void {
    if (this.#young.size >= GENERATION_MAX) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, head);
  }
}
