/**
 * The slot in which a Session object finds its port to the code that runs it. An app's bundle holds its own copy of
 * functions/class/session.ts, the trusted side another: both know one slot under a registered symbol on globalThis,
 * which the bootstrap fills before it loads an app.
 */

/** Symbol of the slot, where both copies look. */
export const SESSION_SLOT: unique symbol = Symbol.for("sojourn.stateful") as never;
/** Symbol on the prototype of the base class, whichever copy it is of: the methods of an app end there. */
export const SESSION_BASE: unique symbol = Symbol.for("sojourn.stateful.base") as never;

/** Client or origin that is attached, as a handler is given it. */
export interface SessionPeer {
  readonly kind: "client" | "origin";
  readonly id: string;
  send(message: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
}

/** Port through which a Session object calls the code that runs it. */
export interface SessionPort {
  readonly id: string;
  readonly env: unknown;
  attached(kind: SessionPeer["kind"]): readonly SessionPeer[];
  readCache(name: string, load: () => unknown, ttlMs?: number): Promise<unknown>;
  setTimer(name: string, ms: number): void;
  clearTimer(name: string): void;
  end(): void;
}

/** Content of the slot. */
export interface SessionSlot {
  /** Port of the object that is being made. */
  making: SessionPort | undefined;
}
