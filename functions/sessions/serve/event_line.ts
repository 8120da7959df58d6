/**
 * Events of a stateful session on their way to its isolate: at once, but where they are held, or go in single file.
 *
 * Single file is for what follows a turn that took its isolate with it while several events were under way: some of them
 * may have been done, with commits that had not left, and nobody knows in which one it ended.
 *
 * LI1  Events are given in the order in which they came.
 * LI2  In single file the next one is given when the one before is done: so an isolate that ends does so in the only one
 *      that was given, and what was done before has left.
 * LI3  Single file has an end: with so many events, or when one of them takes its time, which no turn does that is ended
 *      for it.
 * LI4  What another stateful session waits for is given when no handler runs. Until then it can be taken back, and has
 *      not been begun.
 */
import type { HandledEvent } from "../turn/mod.ts";

/** What it needs of the run. */
export interface EventLineRun {
  give(event: HandledEvent): void;
  /** All that was given is done. */
  isFree(): boolean;
  /** No handler runs, also none that the log left running. */
  isIdle(): boolean;
  nowMs(): number;
}

/** Several times what a turn may take, on a machine that is busy: then its handler waits for something. */
const SINGLE_MS_MAX = 10_000;

/** See the file's header. */
export class EventLine {
  readonly #run: EventLineRun;
  #waiting: HandledEvent[] = [];
  #isHeld = false;
  /** So many wait for the one before, with the one that ends it; 0: none. */
  #single = 0;
  #givenMs = 0;

  constructor(run: EventLineRun) {
    this.#run = run;
  }

  /** None waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Those that wait. */
  get waiting(): readonly HandledEvent[] {
    return this.#waiting;
  }

  /** Whether this request waits. */
  has(request: string): boolean {
    return this.#waiting.some((event) => event.kind === "request" && event.request === request);
  }

  /** LI4: it is not to be given. False: it was. */
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

  /** They wait from now on. */
  hold(): void {
    this.#isHeld = true;
  }

  goOn(): void {
    this.#isHeld = false;
    this.advance();
  }

  /** So many go in single file. */
  single(count: number): void {
    this.#single = count === 0 ? 0 : count + 1;
  }

  /** Gives what may go. */
  advance(): void {
    while (!this.#isHeld && this.#waiting.length > 0) { // LI1
      if (isCall(this.#waiting[0]) && !this.#run.isIdle()) return; // LI4
      if (this.#single > 0 && !this.#mayGo()) return;
      const event = this.#waiting.shift();
      if (event !== undefined) this.#run.give(event);
    }
  }

  /** LI2, LI3 */
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

/** Another stateful session waits for it. */
const isCall = (event: HandledEvent | undefined): boolean =>
  event?.kind === "request" && event.chain.length > 0;
