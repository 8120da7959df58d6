/**
 * The healing storage, whose damaged rows (ports.ts S4) are gone before a read is answered: every read of the replica's
 * goes through it, and finds each row as it was put, or none where the row's fate is known (damage.ts).
 *
 * Life of a damaged row: a read meets it → the healer says what is known of it → one commit of its own: the row anew,
 * or dropped with a *word*, the record that says so → the healer is told → the read is done again.
 *
 * HS1  A row is dropped in one step with its word: a crash leaves neither a hole without a word nor a word without a
 *      hole.
 * HS2  Commits run one at a time, the healer's and the replica's; a row that was written meanwhile is left as it is.
 */
import type { Key } from "../model/key.ts";
import { DamagedRows, type DiskCommit, type ScanOptions, type Storage } from "../model/ports.ts";
import type { Range } from "../model/range.ts";
import type { Position, Row } from "../model/row.ts";

/** Healer of damaged rows: it knows what a row was, or what follows where that is lost. */
export interface Healer {
  /** Returns the row as it was committed last, from memory. */
  remembered(key: Key): Row | undefined;
  /**
   * Returns the record that says that the row was dropped.
   *
   * @throws Error where this site can't go on without the row.
   */
  word(key: Key): readonly [string, Uint8Array];
  /** Notes rows that are whole again, and rows that are dropped: both are on disk by now. */
  healed(mended: readonly Key[], dropped: readonly Key[]): void;
}

/** Times that a read's damaged rows are healed: a disk on which a dropped row is still damaged can't be used. */
const TRIES_MAX = 3;

/** Storage that heals damaged rows when a read meets them. */
export class HealingStorage implements Storage {
  readonly #inner: Storage;
  readonly #healer: Healer;
  /** Commit of the replica's that is under way, or the last one. */
  #commit: Promise<void> = Promise.resolve();
  #healing: Promise<void> | null = null;

  constructor(inner: Storage, healer: Healer) {
    this.#inner = inner;
    this.#healer = healer;
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#inner.load();
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(() => this.#inner.get(key));
  }

  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]> {
    return this.#read(() => this.#inner.getMany(keys, bytesMax));
  }

  scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    return this.#read(() => this.#inner.scan(range, options));
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]> {
    return this.#read(() => this.#inner.journal(after, upTo, limit, bytesMax));
  }

  bytes(): Promise<number> {
    return this.#inner.bytes();
  }

  commit(commit: DiskCommit): Promise<void> {
    if (this.#healing !== null) return this.#commitAfter(commit);
    return this.#commit = this.#inner.commit(commit);
  }

  async #commitAfter(commit: DiskCommit): Promise<void> {
    while (this.#healing !== null) await this.#healing.catch(() => {});
    await (this.#commit = this.#inner.commit(commit));
  }

  async close(): Promise<void> {
    await this.#healing?.catch(() => {});
    await this.#inner.close();
  }

  async #read<T>(look: () => Promise<T>): Promise<T> {
    for (let tries = 1;; tries++) {
      try {
        return await look();
      } catch (error) {
        if (!(error instanceof DamagedRows) || tries > TRIES_MAX) throw error;
        await this.#heal(error.keys);
      }
    }
  }

  async #heal(keys: readonly Key[]): Promise<void> {
    while (this.#healing !== null) await this.#healing.catch(() => {});
    const healing = this.#healing = this.#healAlone(keys);
    try {
      await healing;
    } finally {
      this.#healing = null;
    }
  }

  async #healAlone(keys: readonly Key[]): Promise<void> {
    await this.#commit.catch(() => {}); // the replica is told
    const rows: Row[] = [], dropped: Key[] = [];
    const records = new Map<string, Uint8Array>();
    for (const key of new Set(keys)) {
      if (!await this.#isDamaged(key)) continue; // HS2
      const row = this.#healer.remembered(key);
      if (row !== undefined) rows.push(row);
      else {
        records.set(...this.#healer.word(key));
        dropped.push(key);
      }
    }
    if (rows.length === 0 && dropped.length === 0) return;
    await this.#inner.commit({ rows, drop: dropped, records }); // HS1
    this.#healer.healed(rows.map(({ key }) => key), dropped);
  }

  async #isDamaged(key: Key): Promise<boolean> {
    try {
      await this.#inner.get(key);
      return false;
    } catch (error) {
      if (error instanceof DamagedRows) return true;
      throw error;
    }
  }
}
