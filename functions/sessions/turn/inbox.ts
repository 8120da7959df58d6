/** Events that begin handlers and wait until none runs (stateful_session.ts, ST1). */
import type { HandledEvent } from "./event.ts";

/** An event as its site delivers it. */
export type DeliveredEvent = HandledEvent & { readonly number: number; readonly storeClock: number };

/** The event that a rejection stands in place of. */
export const begunOf = (
  { of, number, storeClock }: Extract<DeliveredEvent, { kind: "reject" }>,
): DeliveredEvent | null => of === null ? null : { ...of, number, storeClock };

/** A session that does not come to rest takes no new messages from so many bytes of log on. */
export const HOLD_BYTES = 1024 * 1024;
/** So long it may take to rest then, while somebody waits: longer than a call that ends. */
const HOLD_MS_MAX = 60_000;

/** The events, in order. */
export class Inbox {
  #events: DeliveredEvent[] = [];
  /** Since when nothing was taken while somebody came, and waits; null: since then something was. */
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

  /** Another one comes to a session that takes none: whether the first has been waiting for too long. */
  hasWaitedLong(nowMs: number): boolean {
    if (this.#events.length === 0 || this.#heldSinceMs === null) this.#heldSinceMs = nowMs;
    return nowMs - this.#heldSinceMs > HOLD_MS_MAX;
  }
}
