/**
 * How many store reads of one isolate are under way at a time: a function may start thousands at once, and the
 * rows of all of them would lie in the site's memory, where they hurt every other app.
 *
 * L1  At most READS_MAX reads run, and none begins while more than BACKLOG_BYTES_MAX wait to be sent: an isolate
 *     that asks faster than it takes answers waits for itself.
 * L2  Reads begin in the order in which they were asked for. More than WAITING_MAX that wait are no program.
 */
import { FrameError } from "./frames.ts";
import type { FrameWriter } from "./frame_writer.ts";

/** Enough to keep a site busy, and to hide the round trips of misses. */
export const READS_MAX = 64;
/** A few values of the largest size. */
export const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
/** 256 requests with 64 reads each. */
export const WAITING_MAX = 16 * 1024;

/** The part of a connection's writer that reads wait for. */
export type Backlog = Pick<FrameWriter, "backlogBytes" | "drained">;

const slotsOf = new WeakMap<Backlog, ReadSlots>();

/** The reads of one isolate. */
export class ReadSlots {
  readonly #writer: Backlog;
  readonly #waiting: (() => void)[] = [];
  /** Of `#waiting`, those before it have begun: shifting a long array costs its length. */
  #next = 0;
  #running = 0;
  #draining = false;
  #pumping = false;

  constructor(writer: Backlog) {
    this.#writer = writer;
  }

  /** The slots of the isolate behind a connection. */
  static of(writer: Backlog): ReadSlots {
    let slots = slotsOf.get(writer);
    if (slots === undefined) slotsOf.set(writer, slots = new ReadSlots(writer));
    return slots;
  }

  /**
   * Begins a read, now or when there is room; {@link leave} once it is over.
   *
   * @throws FrameError when too many wait.
   */
  enter(begin: () => void): void {
    if (this.#waiting.length - this.#next >= WAITING_MAX) {
      throw new FrameError(`more than ${WAITING_MAX} store reads wait for those before them`);
    }
    this.#waiting.push(begin);
    this.#pump();
  }

  /** A read is over, and its answer is with the writer. */
  leave(): void {
    this.#running--;
    this.#pump();
  }

  #pump(): void {
    if (this.#pumping) return; // a read that is over as it begins: the loop below goes on
    this.#pumping = true;
    try {
      this.#beginWaiting();
    } finally {
      this.#pumping = false;
    }
  }

  #beginWaiting(): void {
    while (this.#next < this.#waiting.length && this.#running < READS_MAX && !this.#draining) {
      if (this.#writer.backlogBytes > BACKLOG_BYTES_MAX) return this.#drain();
      const begin = this.#waiting[this.#next++];
      if (this.#next === this.#waiting.length) {
        this.#waiting.length = 0;
        this.#next = 0;
      }
      this.#running++;
      begin?.();
    }
  }

  #drain(): void {
    this.#draining = true;
    this.#writer.drained().then(() => {
      this.#draining = false;
      this.#pump();
    });
  }
}
