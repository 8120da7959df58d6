/**
 * The line of events of a stateful session on their way to its isolate. They are given at once, except while they are
 * held, or go in single file.
 *
 * Single file is for the events that follow a turn which took its isolate with it while several events were under way:
 * some of them may have been done, with commits that had not left, and nobody knows in which one the isolate ended.
 *
 * LI1  Events are given in the order in which they came.
 * LI2  In single file the next one is given when the one before is done: so an isolate that ends does so in the only
 *      one that was given, and what was done before has left.
 * LI3  Single file ends after a number of events, or when one of them takes long: a turn of that length would have
 *      ended its isolate, so the event's handler waits for something.
 * LI4  A call for which another stateful session waits is given when no handler runs. Until then it can be taken back,
 *      and has not been begun.
 */
import type { HandledEvent } from "../turn/mod.ts";

/** The run's part that the line needs. */
export interface EventLineRun {
  give(event: HandledEvent): void;
  /** Reports whether all events that were given are done. */
  isFree(): boolean;
  /** Reports whether no handler runs, not even one that the log left running. */
  isIdle(): boolean;
  nowMs(): number;
}

/**
 * Milliseconds of several turns of the longest kind, on a busy machine: an event that takes longer has a handler that
 * waits for something.
 */
const SINGLE_MS_MAX = 10_000;

/** See the file's header. */
export class EventLine {
  readonly #run: EventLineRun;
  #waiting: HandledEvent[] = [];
  #isHeld = false;
  /** Number of events that still go in single file, counting the one that ends it; 0: none. */
  #single = 0;
  #givenMs = 0;

  constructor(run: EventLineRun) {
    this.#run = run;
  }

  /** True while no event waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Events that wait. */
  get waiting(): readonly HandledEvent[] {
    return this.#waiting;
  }

  /** Reports whether a request waits. */
  has(request: string): boolean {
    return this.#waiting.some((event) => event.kind === "request" && event.request === request);
  }

  /** Takes a request out of the line, so that it is not given. Returns false where it was given already (LI4). */
  take(request: string): boolean {
    const at = this.#waiting.findIndex((event) => event.kind === "request" && event.request === request);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    this.advance();
    return true;
  }

  push(event: HandledEvent): void {
    this.#waiting.push(event);
    this.advance();
  }

  /** Holds all events from now on. */
  hold(): void {
    this.#isHeld = true;
  }

  goOn(): void {
    this.#isHeld = false;
    this.advance();
  }

  /** Makes the next `count` events go in single file. */
  single(count: number): void {
    this.#single = count === 0 ? 0 : count + 1;
  }

  /** Gives the events that may go. */
  advance(): void {
    while (!this.#isHeld && this.#waiting.length > 0) { // LI1
      if (isCall(this.#waiting[0]) && !this.#run.isIdle()) return; // LI4
      if (this.#single > 0 && !this.#mayGo()) return;
      const event = this.#waiting.shift();
      if (event !== undefined) this.#run.give(event);
    }
  }

  /** Reports whether the next event may go in single file (LI2, LI3). */
  #mayGo(): boolean {
    const nowMs = this.#run.nowMs();
    if (!this.#run.isFree()) {
      if (nowMs - this.#givenMs <= SINGLE_MS_MAX) return false;
      this.#single = 0;
      return true;
    }
    this.#givenMs = nowMs;
    this.#single--;
    return true;
  }
}

/** Reports whether another stateful session waits for an event. */
const isCall = (event: HandledEvent | undefined): boolean =>
  event?.kind === "request" && event.chain.length > 0;
