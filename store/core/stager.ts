/** Collects the rows of a batch that came in several messages (`more`), up to the last. */
import type { WireRow } from "../wire/message.ts";

export class Stager {
  #rows: WireRow[] = [];

  /** Adds rows; returns all rows of the batch once its last message is in, null before. */
  add(rows: readonly WireRow[], more: boolean): readonly WireRow[] | null {
    if (!more && this.#rows.length === 0) return rows;
    for (const row of rows) this.#rows.push(row);
    if (more) return null;
    const all = this.#rows;
    this.#rows = [];
    return all;
  }

  clear(): void {
    this.#rows = [];
  }
}
