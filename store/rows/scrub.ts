/**
 * The scrub of a disk: it reads all rows again and again, at a pace that slows nothing down. So rows that have changed
 * there by themselves (ports.ts S4) are found while other sites still have them, and not first when they are wanted.
 *
 * Life: `new Scrub` → … (a page, a pause, a page, …, a long pause, from the beginning) → `close`.
 *
 * X1  At most SCRUB_BYTES_PER_MS are read on average, and SCRUB_ROWS at a time.
 */
import type { Key } from "../model/key.ts";
import {
  SCRUB_BEGIN_MS,
  SCRUB_BYTES_PER_MS,
  SCRUB_PAUSE_MS,
  SCRUB_ROWS,
  SCRUB_STEP_MS,
} from "../model/limits.ts";
import { type Clock, DamagedRows, type Storage } from "../model/ports.ts";
import { keyAfter, WHOLE } from "../model/range.ts";
import { rowBytes } from "../model/row.ts";

interface Parts {
  readonly storage: Pick<Storage, "scan">;
  readonly clock: Pick<Clock, "after">;
  /** Reports that a read has failed; never for damaged rows, which the storage reports by itself. */
  readonly failed: (error: unknown) => void;
}

/** Reader of a whole disk, again and again. */
export class Scrub {
  readonly #parts: Parts;
  #next: Key = WHOLE.start;
  #cancel: () => void;
  #isClosed = false;
  /** Number of times that all rows were read. */
  rounds = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#cancel = parts.clock.after(SCRUB_BEGIN_MS, () => this.#begin());
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #begin(): void {
    this.#step().then((waitMs) => {
      if (!this.#isClosed) this.#cancel = this.#parts.clock.after(waitMs, () => this.#begin());
    }).catch((error) => {
      if (!this.#isClosed) this.#parts.failed(error);
    });
  }

  /** Reads a page, and returns how long to wait before the next one, in milliseconds. */
  async #step(): Promise<number> {
    const found = await this.#page();
    const last = found.at(-1);
    this.#next = last === undefined ? WHOLE.end : keyAfter(last.key);
    if (found.length === SCRUB_ROWS || last?.isDamaged === true) {
      const bytes = found.reduce((sum, row) => sum + row.bytes, 0);
      return Math.max(SCRUB_STEP_MS, bytes / SCRUB_BYTES_PER_MS); // X1
    }
    this.#next = WHOLE.start;
    this.rounds++;
    return SCRUB_PAUSE_MS;
  }

  async #page(): Promise<readonly { key: Key; bytes: number; isDamaged: boolean }[]> {
    const range = { start: this.#next, end: WHOLE.end };
    try {
      const rows = await this.#parts.storage.scan(range, { limit: SCRUB_ROWS });
      return rows.map((row) => ({ key: row.key, bytes: rowBytes(row), isDamaged: false }));
    } catch (error) {
      if (!(error instanceof DamagedRows)) throw error;
      // Rows behind the last damaged one are read again.
      return error.keys.toSorted().map((key) => ({ key, bytes: 0, isDamaged: true }));
    }
  }
}
