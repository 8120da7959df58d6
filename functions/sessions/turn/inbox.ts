/** Inbox of a session: events that begin handlers, and wait until no handler runs (stateful_session.ts, ST1). */
import type { HandledEvent } from "./event.ts";

/** An event with the number and store clock that its site delivered with it. */
export type DeliveredEvent = HandledEvent & { readonly number: number; readonly storeClock: number };

/** Returns the event that a rejection stands in place of; null where there was none. */
export const begunOf = (
  { of, number, storeClock }: Extract<DeliveredEvent, { kind: "reject" }>,
): DeliveredEvent | null => of === null ? null : { ...of, number, storeClock };

/** Bytes of log from which on a session that does not come to rest begins no new handlers. */
export const HOLD_BYTES = 1024 * 1024;
/** Milliseconds that such a session may take to come to rest while an event waits: longer than a call takes to end. */
const HOLD_MS_MAX = 60_000;

/** Queue of the events, in order. */
export class Inbox {
  #events: DeliveredEvent[] = [];
  /** Time since which events have waited and none was taken; null: one was taken since. */
  #heldSinceMs: number | null = null;

  get first(): DeliveredEvent | undefined {
    return this.#events[0];
  }

  push(event: DeliveredEvent): void {
    this.#events.push(event);
  }

  /** Puts an event before all others. */
  putBack(event: DeliveredEvent): void {
    this.#events.unshift(event);
  }

  take(): DeliveredEvent | undefined {
    this.#heldSinceMs = null;
    return this.#events.shift();
  }

  clear(): void {
    this.#events = [];
  }

  /**
   * Reports whether the first event has waited for too long. Called when another event comes to a session that takes
   * none.
   */
  hasWaitedLong(nowMs: number): boolean {
    if (this.#events.length === 0 || this.#heldSinceMs === null) this.#heldSinceMs = nowMs;
    return nowMs - this.#heldSinceMs > HOLD_MS_MAX;
  }
}
