/**
 * The part of a session's log that its isolate holds: the entries since the newest checkpoint, so that a handler that
 * throws can be undone here.
 *
 * SL1  Numbers only grow: an entry that was given out keeps its number, also when it is voided.
 * SL2  `cut` takes back what was not given out since the last commit point, and says how many entries that were
 *      given out are void with it.
 */
import type { Writer } from "../../store/codec.ts";
import type { LogMark } from "./replay.ts";

/** A new log's buffer: a few entries, since most sessions of an isolate are idle. */
const BUFFER_BYTES = 64;

/** The entries since the newest checkpoint. */
export class SessionLog {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** The end of the log. */
  #end: LogMark;
  /** How far it was given out. */
  #given: LogMark;
  /** The last commit point. */
  #point: LogMark;
  /** The number of the first entry that it holds. */
  #first: number;

  /** @param at the number of the last entry before these, which are given out already. */
  constructor(at: number, entries: Uint8Array, count: number) {
    this.#first = at + 1;
    this.#bytes = entries as Uint8Array<ArrayBuffer>;
    this.#end = this.#given = this.#point = { bytes: entries.length, sequence: at + count };
  }

  /** The number of the last entry. */
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

  append(entries: Writer, count: number): void {
    const bytes = entries.view();
    const need = this.#end.bytes + bytes.length;
    if (need > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(need, this.#bytes.length * 2, BUFFER_BYTES));
      grown.set(this.#bytes.subarray(0, this.#end.bytes));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#end.bytes);
    this.#end = { bytes: need, sequence: this.#end.sequence + count };
  }

  /** The last commit point is here, or at the end. */
  point(mark = this.#end): void {
    this.#point = mark;
  }

  /** Whether something has not been given out. */
  get hasMore(): boolean {
    return this.#end.sequence > this.#given.sequence;
  }

  /** What was not given out yet is. */
  give(): { readonly first: number; readonly count: number; readonly entries: Uint8Array } {
    const given = this.#given;
    this.#given = this.#end;
    return {
      first: given.sequence + 1,
      count: this.#end.sequence - given.sequence,
      entries: this.#bytes.slice(given.bytes, this.#end.bytes),
    };
  }

  /** SL2. */
  cut(): number {
    const to = this.#given.sequence > this.#point.sequence ? this.#given : this.#point;
    this.#end = to;
    return to.sequence - this.#point.sequence;
  }

  /** The entries up to the last commit point. */
  upToPoint(): Uint8Array {
    return this.#bytes.subarray(0, this.#point.bytes);
  }

  /** All that it holds. */
  all(): Uint8Array {
    return this.#bytes.subarray(0, this.#end.bytes);
  }

  /** The number of the last entry before what the handler that runs has done. */
  get pointSequence(): number {
    return this.#point.sequence;
  }

  /** A checkpoint stands for all of it. */
  restart(): void {
    this.#first = this.#end.sequence + 1;
    this.#bytes = new Uint8Array(0);
    this.#end = this.#given = this.#point = { bytes: 0, sequence: this.#end.sequence };
  }
}
