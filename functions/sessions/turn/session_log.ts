/**
 * The part of a session's log that its isolate holds: the entries since the newest checkpoint, so that a handler that
 * throws can be undone here.
 *
 * SL1  Numbers only grow: an entry that was given out keeps its number, also when it is voided.
 * SL2  `cut` takes back what was not given out since the last commit point, and returns how many entries that were
 *      given out are void with that.
 */
import { Writer } from "../../../store/model/codec.ts";
import { writeCheckpointEntry, writeTurn } from "./log_entry.ts";
import type { LogMark } from "./replay.ts";
import type { TurnEnd, TurnInput } from "./turn.ts";

/** A new log's buffer: a few entries, since most sessions of an isolate are idle. */
const BUFFER_BYTES = 64;

/** The entries since the newest checkpoint. */
export class SessionLog {
  /** Bytes of the entries. Behind `#end` there may be entries that were cut, or not written to their end. */
  #writer: Writer;
  /** End of the log. */
  #end: LogMark;
  /** Place up to which the log was given out. */
  #given: LogMark;
  /** Last commit point. */
  #point: LogMark;
  /** Number of the first entry that the log holds. */
  #first: number;

  /** @param at the number of the last entry before these, which are given out already. */
  constructor(at: number, entries: Uint8Array, count: number) {
    this.#first = at + 1;
    this.#writer = new Writer(Math.max(entries.length, BUFFER_BYTES)).raw(entries);
    this.#end = this.#given = this.#point = { bytes: entries.length, sequence: at + count };
  }

  /** Number of the last entry. */
  get sequence(): number {
    return this.#end.sequence;
  }

  get first(): number {
    return this.#first;
  }

  get lengthBytes(): number {
    return this.#end.bytes;
  }

  get length(): number {
    return this.#end.sequence - this.#first + 1;
  }

  /** Appends the entries of a turn. `beforeMs` is the last reading of the clock before it. */
  turn(input: TurnInput, end: TurnEnd, beforeMs: number): void {
    this.#writer.cut(this.#end.bytes);
    this.#appended(writeTurn(this.#writer, input, end, beforeMs));
  }

  /** Appends the entry of a checkpoint. */
  checkpoint(digest: number): void {
    writeCheckpointEntry(this.#writer.cut(this.#end.bytes), digest);
    this.#appended(1);
  }

  #appended(count: number): void {
    this.#end = { bytes: this.#writer.length, sequence: this.#end.sequence + count };
  }

  /** Sets the last commit point: here, or at the end. */
  point(mark = this.#end): void {
    this.#point = mark;
  }

  /** True while there are entries that have not been given out. */
  get hasMore(): boolean {
    return this.#end.sequence > this.#given.sequence;
  }

  /** Gives out the entries that were not: a view, of bytes that stay as they are (SL2). */
  give(): { readonly first: number; readonly count: number; readonly entries: Uint8Array } {
    const given = this.#given;
    this.#given = this.#end;
    return {
      first: given.sequence + 1,
      count: this.#end.sequence - given.sequence,
      entries: this.#writer.view(given.bytes, this.#end.bytes),
    };
  }

  /** Takes back entries, and returns how many that were given out are void (SL2). */
  cut(): number {
    const to = this.#given.sequence > this.#point.sequence ? this.#given : this.#point; // SL1
    this.#end = to;
    return to.sequence - this.#point.sequence;
  }

  /** Returns the entries up to the last commit point. */
  upToPoint(): Uint8Array {
    return this.#writer.view(0, this.#point.bytes);
  }

  /** Returns all entries that the log holds. */
  all(): Uint8Array {
    return this.#writer.view(0, this.#end.bytes);
  }

  /** Number of the last entry before what the handler that runs has done. */
  get pointSequence(): number {
    return this.#point.sequence;
  }

  /** Begins anew behind a checkpoint that stands for all of the log. */
  restart(): void {
    this.#first = this.#end.sequence + 1;
    this.#writer = new Writer(BUFFER_BYTES);
    this.#end = this.#given = this.#point = { bytes: 0, sequence: this.#end.sequence };
  }
}
