/**
 * Stateful sessions, as an app writes them: classes that extend {@link Session}, named in `defineApp({ sessions })`.
 *
 * An object of such a class lives at one site, its home, and is what it was when that site is lost: its handlers are
 * run again from a log (docs/protocol/turns.md). So a handler sees nothing of the world but what is recorded: the
 * ordinary globals (`Date`, `Math.random`, `crypto`, timers, `fetch`) and `env`, as they are inside.
 *
 * SE1  One handler runs at a time; state, outputs, timers and writes of a handler happen together, or not at all when it
 *      throws.
 * SE2  The state is the object's fields: tracked structures (`map`, `list`, …) by what changes, all others as a whole, as
 *      values with a structured clone.
 */
import { AppError } from "../vocabulary/errors.ts";
import { SESSION_BASE, SESSION_SLOT, type SessionPort, type SessionSlot } from "./session_slot.ts";

export type { CheckpointPolicy } from "./checkpoint_policy.ts";
export type { WhenThrown } from "./when_thrown.ts";

/** Who sent a message to a stateful session, and a way to answer. */
export interface From {
  /** Who it is. */
  readonly kind: "client" | "origin";
  /** Its identity, the same for as long as it is attached. */
  readonly id: string;
  /** Sends it a message, of 4 MiB at most, when the handler ends. Who has gone gets nothing. */
  send(message: string | Uint8Array): void;
  /**
   * Sends it away when the handler ends, after what it was sent before; `onClose` follows when it has gone.
   *
   * @param code 1000 (when absent), or from 3000 to 4999, as WebSockets have it.
   * @param reason up to 123 bytes, for its program.
   */
  close(code?: number, reason?: string): void;
}

/** What the stateful sessions of an isolate share: values that are costly to make, and the same for all. */
export interface SessionCache {
  /**
   * A value by its name (1 to 200 characters, the same for all classes of the app): the one that a session of this
   * isolate has made before, or what `load` makes now, as a frozen copy. What was read is in the session's log, of
   * 256 KiB at most: keep it in a variable of the handler, and read it once.
   *
   * @param options `ttlMs`: one that was made longer ago is made anew, by this read for all; left out: none is too old.
   */
  read<T>(name: string, load: () => T | Promise<T>, options?: { readonly ttlMs?: number }): Promise<T>;
}

/**
 * Base of the classes named in `defineApp({ sessions })`. `E` is the app's env. Public methods of a class that are no
 * handlers (`onMessage`, …) can be called from outside: `env.sessions.NAME.get(id).method(…)`.
 *
 * ```ts
 * import { defineApp, map, Session } from "sojourn";
 *
 * class Cart extends Session {
 *   items = map<string, number>();
 *   add(what: string): number {
 *     this.items.set(what, (this.items.get(what) ?? 0) + 1);
 *     this.setTimer("forgotten", 3_600_000);
 *     return this.items.size;
 *   }
 *   override onTimer(name: string) {
 *     if (name === "forgotten") this.end();
 *   }
 * }
 * export default defineApp({ sessions: { cart: Cart } });
 * ```
 *
 * A class may say, as static members:
 *
 * - `whenThrown` ({@link WhenThrown}), what becomes of a message, a timer, an attachment or a departure whose handler
 *   throws, or loops. The state is as it was before, whatever it says: `"reject"` (the default) gives it up, tells the
 *   sender of a message, and says so in the app's log; `"retry"` tries it again, up to five times within ten seconds,
 *   and then as `"park"`; `"park"` has the session stand still until an operator resumes it (`sojourn sessions resume`)
 *   or other code is deployed. Requests and method calls tell their caller, always.
 * - `origin`, the address of the server behind it (`http:`, `https:`, `ws:`, `wss:` or `tcp:`), which knows nothing of
 *   Sojourn.
 * - `durability`, who holds its log: `"owners"` (the default), the disks of sites; `"hosts"`, beside them the clients with
 *   the library and the agents that are attached: what is sent to them leaves at once, with the log that it follows from,
 *   and the stateful session goes on from what they hold where its home is lost, with its disk or not. Everybody else
 *   is answered when disks have it, as ever (CESSNA, section 4).
 * - `standby`: `true` has the nearest site that keeps its log run it along, so that it goes on there at once when its
 *   home is lost. It costs that site the memory of the state, and the time of every handler once more.
 * - `retention`, `{ logMs }`: how long operators can read its log when it has ended (`sojourn sessions log`), up to what
 *   the site's file says (`limits.statefulLogMs`, an hour by default); 0 keeps nothing.
 * - `checkpoint` ({@link CheckpointPolicy}), how often its fields are written down: the less often, the longer is what is
 *   replayed when a handler throws, or at another site.
 * - `shape`, a number that rises when its fields change in a way that their names do not tell ({@link Session.migrate}).
 */
export abstract class Session<E = unknown> {
  readonly #port: SessionPort;

  /** Sessions are made by the platform, when they are first used. @throws AppError `not_available` elsewhere. */
  constructor() {
    const slot = (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT];
    const port = slot?.making;
    if (slot === undefined || port === undefined) {
      throw new AppError(
        "not_available",
        "a stateful session is not made with new: env.sessions.NAME.get(id) addresses it, and it begins with its first use",
      );
    }
    // A field that makes another session gets none of this one's.
    slot.making = undefined;
    this.#port = port;
  }

  /** The app's env: the store and everything else that was declared. */
  get env(): E {
    return this.#port.env as E;
  }

  /** Values that the stateful sessions of an isolate share. */
  get cache(): SessionCache {
    return { read: (name, load, of) => this.#port.readCache(name, load, of?.ttlMs) as Promise<never> };
  }

  /** The id that it is addressed by. */
  get id(): string {
    return this.#port.id;
  }

  /** Clients that are attached now, but for those that it has closed. */
  get clients(): readonly From[] {
    return this.#port.attached("client");
  }

  /** The client, while exactly one is attached. */
  get client(): From | undefined {
    const [only, ...more] = this.#port.attached("client");
    return more.length === 0 ? only : undefined;
  }

  /** The WebSocket or TCP server that the class names (`static origin`), while it is attached. */
  get origin(): From | undefined {
    return this.#port.attached("origin").at(-1);
  }

  /** A client or the origin has attached. */
  onOpen?(from: From): void | Promise<void>;
  /** A message of a client or of the origin. */
  onMessage?(message: string | Uint8Array, from: From): void | Promise<void>;
  /** A client or the origin has gone. */
  onClose?(from: From): void | Promise<void>;
  /** A timer set by {@link Session.setTimer} is due. */
  onTimer?(name: string): void | Promise<void>;
  /** An HTTP request to this stateful session. */
  fetch?(request: Request): Response | Promise<Response>;
  /**
   * Takes over the fields of a stateful session that a version of this class with a lower `static shape` (0 where it had
   * none) has left behind: before any other method, with the fields as this version begins with them. What is not taken
   * is gone. Tracked structures are handed over as such: read them, or put one into a field.
   *
   * Nothing but the old fields may tell what it does, and it is done when it returns: it may run again, at another site.
   * One that throws leaves everything as it was, for a version that does better.
   *
   * ```ts
   * import { map, Session } from "sojourn";
   *
   * class Card extends Session {
   *   static shape = 1;
   *   stamps = map<string, { count: number }>();
   *   override migrate(old: Record<string, unknown>, shape: number) {
   *     if (shape > 0) return;
   *     for (const [drink, count] of old["stamps"] as Map<string, number>) this.stamps.set(drink, { count });
   *   }
   * }
   * ```
   *
   * @param old the fields by their names.
   * @param shape of the class that wrote them.
   */
  migrate?(old: Record<string, unknown>, shape: number): void;

  /**
   * Sets the timer of that name, in place of an earlier one: `onTimer(name)` in so many milliseconds. It is part of the
   * state, and goes off wherever the session is then; a `setTimeout` keeps it from resting.
   */
  setTimer(name: string, ms: number): void {
    this.#port.setTimer(name, ms);
  }

  /** Clears the timer of that name. */
  clearTimer(name: string): void {
    this.#port.clearTimer(name);
  }

  /** Ends this stateful session when the handler ends: its state is dropped, and its id begins anew if it is used. */
  end(): void {
    this.#port.end();
  }
}

Object.defineProperty(Session.prototype, SESSION_BASE, { value: true });
