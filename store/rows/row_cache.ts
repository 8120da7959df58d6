/**
 * The cache of rows that were written or read lately, as the disk has them: most reads, every comparison with a row
 * that is overwritten, and every push of what was just committed need not go to the disk.
 *
 * C1  The cached row of a key is the one on the disk: a commit puts in the rows that it wrote before any site or writer
 *     is told of it, and a read puts in the rows that it found only if no commit settled meanwhile.
 * C2  It is bounded by bytes: two generations, of which the older is forgotten when the recent one is full.
 */
import type { Key } from "../model/key.ts";
import { ROW_CACHE_BYTES, ROW_CACHE_ROW_BYTES_MAX } from "../model/limits.ts";
import { type Row, rowBytes } from "../model/row.ts";

/** Bytes that an entry costs beside its key and value. */
const ENTRY_BYTES = 200;

export class RowCache {
  #recent = new Map<Key, Row | null>();
  #older = new Map<Key, Row | null>();
  #bytes = 0;

  /** Returns the row of a key; null: there is none on the disk; undefined: not known here. */
  get(key: Key): Row | null | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;
    const older = this.#older.get(key);
    if (older !== undefined) this.put(key, older);
    return older;
  }

  put(key: Key, row: Row | null): void {
    const bytes = row === null ? key.length : rowBytes(row);
    if (bytes > ROW_CACHE_ROW_BYTES_MAX) {
      this.#recent.delete(key);
      this.#older.delete(key);
      return;
    }
    this.#recent.set(key, row);
    this.#bytes += bytes + ENTRY_BYTES; // an overwritten one counts twice: the bound holds all the more
    if (this.#bytes < ROW_CACHE_BYTES / 2) return; // C2
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#bytes = 0;
  }
}
