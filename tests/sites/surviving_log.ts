/**
 * The log of a session as it survives: whatever an isolate is given to go on from, in no epoch before the newest, and
 * what it commits in that epoch. What an older one commits afterwards has no place in it.
 *
 * It is told by what goes in and out of isolates, not by those who keep logs: a log that is given out too short is the
 * one that counts here, and then what was heard before is not of it.
 *
 * SL1  An epoch is one process's: two homes never serve in the same.
 * SL2  One that begins anew under the same name, in a later epoch, comes after one that has ended, and stays as it was
 *      then. Where none has ended whoever is given nothing has lost what was there.
 */
import { readEntries, type ReadEntry } from "../../functions/sessions/turn/log_entry.ts";

/** The log of one session to its end, or as far as it has come. */
export interface Life {
  readonly entries: readonly ReadEntry[];
  /** Of each entry, when it was first seen: how much had been observed of the run by then. */
  readonly orders: readonly number[];
}

/** See the file's header. */
export class SurvivingLog {
  /** SL2: those that have ended. */
  readonly before: Life[] = [];
  entries: ReadEntry[] = [];
  orders: number[] = [];
  /** With so many entries it has ended; null: it has not. */
  #end: number | null = null;
  readonly wrong: string[] = [];
  #epoch = 0;
  readonly #owners = new Map<number, string>();
  openings = 0;

  get epoch(): number {
    return this.#epoch;
  }

  /** Whether nobody who is there now has anything to do with it. */
  get isEnded(): boolean {
    return this.#end !== null;
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
    const given = pieces.flatMap((bytes) => readEntries(bytes));
    if (this.#end !== null && at === 0 && given.length === 0) { // SL2
      this.before.push({ entries: this.entries, orders: this.orders });
      [this.entries, this.orders, this.#end] = [[], [], null];
    }
    if (at > this.entries.length) {
      this.wrong.push(`epoch ${epoch} begins at entry ${at} of ${this.entries.length}`);
      return;
    }
    this.entries.length = at;
    this.entries.push(...given);
    if (this.entries.length < (this.#end ?? 0)) this.#end = null;
    this.orders.length = Math.min(this.orders.length, this.entries.length);
    this.#seen(order);
  }

  committed(
    epoch: number,
    { first, count, entries: bytes, isEnded }: {
      readonly first: number;
      readonly count: number;
      readonly entries: Uint8Array;
      readonly isEnded: boolean;
    },
    order: number,
  ): void {
    if (epoch !== this.#epoch || count === 0) return;
    if (first !== this.entries.length + 1) {
      this.wrong.push(`epoch ${epoch} commits entry ${first} after ${this.entries.length}`);
    }
    this.entries.push(...readEntries(bytes));
    if (isEnded) this.#end = this.entries.length;
    this.#seen(order);
  }

  #seen(order: number): void {
    while (this.orders.length < this.entries.length) this.orders.push(order);
  }
}
