/** The stateful sessions of an app, as its functions address them: `env.sessions.NAME`. */
import type { Session } from "../class/session.ts";

/**
 * A stateful session from outside: its methods, each answering with a promise, and `fetch`. Arguments and results
 * are values with a structured clone; what a method throws is thrown here, with its message and code.
 */
export type SessionStub<C> =
  & {
    [
      M in keyof C as M extends keyof Session | "constructor" ? never
        : C[M] extends (...args: never[]) => unknown ? M
        : never
    ]: C[M] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
  }
  & {
    /** What it is addressed by. */
    readonly id: string;
    /**
     * Hands a request to the class's `fetch`; both bodies are whole, of 1 MiB at most. For a request that asks for a
     * WebSocket it answers a response that, returned by the function, attaches the socket to the stateful session: what
     * comes on it goes to `onMessage`.
     */
    fetch(input: Request | URL | string, init?: RequestInit): Promise<Response>;
  };

/** The stateful sessions of one class, by id. */
export interface SessionNamespace<C> {
  /** The stateful session of an id of 1 to 200 bytes; it begins with its first use. */
  get(id: string): SessionStub<C>;
  /** A new one, under an id that nobody has. */
  create(): SessionStub<C>;
}
