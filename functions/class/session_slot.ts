/**
 * How a Session object finds what runs it. An app's bundle holds its own copy of functions/class/session.ts, the trusted
 * side another: both know one slot under a registered symbol on globalThis, which the bootstrap fills before it
 * loads an app.
 */

/** Where both copies look. */
export const SESSION_SLOT: unique symbol = Symbol.for("sojourn.stateful") as never;
/** On the prototype of the base class, whichever copy: where methods of an app end. */
export const SESSION_BASE: unique symbol = Symbol.for("sojourn.stateful.base") as never;

/** Somebody attached, as a handler is given it. */
export interface SessionPeer {
  readonly kind: "client" | "origin";
  readonly id: string;
  send(message: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
}

/** What a Session object asks of what runs it. */
export interface SessionPort {
  readonly id: string;
  readonly env: unknown;
  attached(kind: SessionPeer["kind"]): readonly SessionPeer[];
  readCache(name: string, load: () => unknown, ttlMs?: number): Promise<unknown>;
  setTimer(name: string, ms: number): void;
  clearTimer(name: string): void;
  end(): void;
}

/** What the slot holds. */
export interface SessionSlot {
  /** The port of the object that is being made. */
  making: SessionPort | undefined;
}
