/**
 * Bounds on the store reads of one isolate, its commits and its calls that are under way at a time: a function may
 * start thousands at once, and the rows of all of them would lie in the site's memory, where they hurt every other app.
 *
 * L1  At most CALLS_MAX of each run (of calls SESSION_CALLS_MAX), and none begins while more than UNREAD_BYTES_MAX wait
 *     to be sent: an isolate that asks faster than it takes answers waits for itself.
 * L2  Calls begin in the order in which they were asked for. An isolate with more than WAITING_MAX that wait, or
 *     WAITING_BYTES_MAX that they hold, breaks the protocol: no program does so.
 */
import { FrameError } from "./frames.ts";
import type { FrameWriter } from "./frame_writer.ts";

/**
 * Number of reads, and of commits, that run at a time: enough to keep a site busy, and to hide the round trips of
 * misses.
 */
export const CALLS_MAX = 64;
/**
 * Number of calls of stateful sessions that run at a time: one for each request of an isolate, since a call that waits
 * for its turn holds its place.
 */
const SESSION_CALLS_MAX = 256;
/** Bytes of answers that may wait to be sent: a few values of the largest size. */
export const UNREAD_BYTES_MAX = 4 * 1024 * 1024;
/** Number of calls that may wait to begin: 256 requests with 64 reads each. */
export const WAITING_MAX = 16 * 1024;

/** Bytes that waiting calls may hold: sixteen of the largest atomic operations. */
export const WAITING_BYTES_MAX = 64 * 1024 * 1024;

/** The part of a connection's writer that reads wait for. */
export type Backlog = Pick<FrameWriter, "backlogBytes" | "drained">;

interface Slots {
  readonly reads: CallSlots;
  readonly commits: CallSlots;
  readonly sessions: CallSlots;
  readonly sends: CallSlots;
}

const slotsOf = new WeakMap<Backlog, Slots>();

interface Waiting {
  readonly begin: () => void;
  readonly bytes: number;
}

/** Slots for the reads, the commits or the session calls of one isolate. */
export class CallSlots {
  readonly #writer: Backlog;
  readonly #most: number;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** Index in `#waiting` before which all have begun: shifting a long array costs its length. */
  #next = 0;
  #running = 0;
  #draining = false;
  #pumping = false;

  constructor(writer: Backlog, most = CALLS_MAX) {
    this.#writer = writer;
    this.#most = most;
  }

  /** Returns the slots of the isolate behind a connection. */
  static of(writer: Backlog): Slots {
    let slots = slotsOf.get(writer);
    if (slots === undefined) {
      slots = {
        reads: new CallSlots(writer),
        commits: new CallSlots(writer),
        sessions: new CallSlots(writer, SESSION_CALLS_MAX),
        sends: new CallSlots(writer),
      };
      slotsOf.set(writer, slots);
    }
    return slots;
  }

  /**
   * Begins a call, now or when there is room; {@link leave} is to follow once it is over.
   *
   * @param bytes what the call holds while it waits.
   * @throws FrameError when too many wait; the call is not added then.
   */
  enter(begin: () => void, bytes = 0): void {
    if (this.#waiting.length - this.#next >= WAITING_MAX) {
      throw new FrameError(`more than ${WAITING_MAX} store calls wait for those before them`);
    }
    if (this.#waitingBytes + bytes > WAITING_BYTES_MAX) {
      throw new FrameError(`store calls that wait for those before them hold ${this.#waitingBytes} bytes`);
    }
    this.#waiting.push({ begin, bytes });
    this.#waitingBytes += bytes;
    this.#pump();
  }

  /** Frees the slot of a call that is over, and whose answer is with the writer. */
  leave(): void {
    this.#running--;
    this.#pump();
  }

  #pump(): void {
    if (this.#pumping) return; // a call that is over as it begins: the loop below goes on
    this.#pumping = true;
    try {
      this.#beginWaiting();
    } finally {
      this.#pumping = false;
    }
  }

  #beginWaiting(): void {
    while (this.#next < this.#waiting.length && this.#running < this.#most && !this.#draining) {
      if (this.#writer.backlogBytes > UNREAD_BYTES_MAX) return this.#drain();
      const call = this.#waiting[this.#next++];
      if (this.#next === this.#waiting.length) {
        this.#waiting.length = 0;
        this.#next = 0;
      }
      this.#running++;
      if (call === undefined) continue;
      this.#waitingBytes -= call.bytes;
      call.begin();
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
