/**
 * The log of a session as it survives: whatever an isolate is given to go on from, in no epoch before the newest, and
 * what it commits in that epoch. What an older one commits afterwards has no place in it.
 *
 * It is told by what goes in and out of isolates, not by those who keep logs: a log that is given out too short is the
 * one that counts here, and then what was heard before is not of it.
 */
import { readEntries, type ReadEntry } from "../../../functions/turns/log_entry.ts";

/** See the file's header. */
export class SurvivingLog {
  readonly entries: ReadEntry[] = [];
  readonly wrong: string[] = [];
  #epoch = 0;
  openings = 0;

  get epoch(): number {
    return this.#epoch;
  }

  /** It is gone on with from there. */
  opened(epoch: number, at: number, pieces: readonly Uint8Array[]): void {
    if (epoch < this.#epoch) return; // the same: another isolate of that home
    this.#epoch = epoch;
    this.openings++;
    if (at > this.entries.length) {
      this.wrong.push(`epoch ${epoch} begins at entry ${at} of ${this.entries.length}`);
      return;
    }
    this.entries.length = at;
    for (const bytes of pieces) this.entries.push(...readEntries(bytes));
  }

  committed(epoch: number, first: number, count: number, bytes: Uint8Array): void {
    if (epoch !== this.#epoch || count === 0) return;
    if (first !== this.entries.length + 1) {
      this.wrong.push(`epoch ${epoch} commits entry ${first} after ${this.entries.length}`);
    }
    this.entries.push(...readEntries(bytes));
  }
}
