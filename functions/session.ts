/**
 * Stateful sessions, as far as an app declares them: the types that a Session class and its callers are written
 * against. Running one is not built yet: every use at run time throws `not_available`.
 */
import { notAvailable } from "./errors.ts";

const WHAT = "a stateful session";

/** Who sent a message to a stateful session, and a way to answer. */
export interface From {
  /** Who it is. */
  readonly kind: "client" | "origin";
  /** Its identity, the same for as long as it is attached. */
  readonly id: string;
  /** Sends it a message when the handler ends. */
  send(message: string | Uint8Array): void;
}

/** Base of the classes named in `defineApp({ sessions })`. `E` is the app's env. */
export abstract class Session<E = unknown> {
  /** The app's env. */
  declare readonly env: E;
  /** The id that it is addressed by. */
  declare readonly id: string;

  /** @throws AppError `not_available`. */
  constructor() {
    throw notAvailable(WHAT);
  }

  /** Clients that are attached now. */
  get clients(): readonly From[] {
    throw notAvailable(WHAT);
  }
  /** The client, while exactly one is attached. */
  get client(): From | undefined {
    throw notAvailable(WHAT);
  }

  /** A message of a client or of the origin. */
  onMessage?(message: string | Uint8Array, from: From): void | Promise<void>;
  /** A timer set by {@link Session.setTimer} is due. */
  onTimer?(name: string): void | Promise<void>;
  /** An HTTP request to this stateful session. */
  fetch?(request: Request): Response | Promise<Response>;

  /** Sets the timer of that name, replacing an earlier one. */
  setTimer(_name: string, _ms: number): void {
    throw notAvailable(WHAT);
  }
  /** Clears the timer of that name. */
  clearTimer(_name: string): void {
    throw notAvailable(WHAT);
  }
  /** Ends this stateful session and drops its state. */
  end(): void {
    throw notAvailable(WHAT);
  }
}
