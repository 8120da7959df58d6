/**
 * The log of a session as it survives: whatever an isolate is given to go on from, in no epoch before the newest, and
 * what it commits in that epoch. What an older one commits afterwards has no place in it.
 *
 * It is told by what goes in and out of isolates, not by those who keep logs: a log that is given out too short is the
 * one that counts here, and then what was heard before is not of it.
 *
 * SL1  An epoch is one process's: two homes never serve in the same.
 */
import { readEntries, type ReadEntry } from "../../functions/turns/log_entry.ts";

/** See the file's header. */
export class SurvivingLog {
  readonly entries: ReadEntry[] = [];
  /** Of each entry, when it was first seen: how much had been observed of the run by then. */
  readonly orders: number[] = [];
  readonly wrong: string[] = [];
  #epoch = 0;
  readonly #owners = new Map<number, string>();
  openings = 0;

  get epoch(): number {
    return this.#epoch;
  }

  /** It is gone on with from there. */
  opened(
    { epoch, at, pieces, by }: {
      readonly epoch: number;
      readonly at: number;
      readonly pieces: readonly Uint8Array[];
      /** The process. */
      readonly by: string;
    },
    order: number,
  ): void {
    const owner = this.#owners.get(epoch) ?? by;
    this.#owners.set(epoch, owner);
    if (owner !== by) this.wrong.push(`epoch ${epoch} is ${owner}'s, and ${by}'s`); // SL1
    if (epoch < this.#epoch) return; // the same: another isolate of that home
    this.#epoch = epoch;
    this.openings++;
    if (at > this.entries.length) {
      this.wrong.push(`epoch ${epoch} begins at entry ${at} of ${this.entries.length}`);
      return;
    }
    this.entries.length = at;
    for (const bytes of pieces) this.entries.push(...readEntries(bytes));
    this.orders.length = Math.min(this.orders.length, this.entries.length);
    this.#seen(order);
  }

  committed(
    epoch: number,
    { first, count, entries: bytes }: {
      readonly first: number;
      readonly count: number;
      readonly entries: Uint8Array;
    },
    order: number,
  ): void {
    if (epoch !== this.#epoch || count === 0) return;
    if (first !== this.entries.length + 1) {
      this.wrong.push(`epoch ${epoch} commits entry ${first} after ${this.entries.length}`);
    }
    this.entries.push(...readEntries(bytes));
    this.#seen(order);
  }

  #seen(order: number): void {
    while (this.orders.length < this.entries.length) this.orders.push(order);
  }
}
