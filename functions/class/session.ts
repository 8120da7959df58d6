/**
 * The base of stateful sessions, as an app writes them: classes that extend {@link Session}, named in `defineApp({
 * sessions })`.
 *
 * An object of such a class lives at one site, its home, and is made again as it was when that site is lost: its
 * handlers are run again from a log (docs/protocol/turns.md). So a handler sees nothing of the world but what is
 * recorded: the ordinary globals (`Date`, `Math.random`, `crypto`, timers, `fetch`) and `env`, as they are inside.
 *
 * One handler runs at a time; state, outputs, timers and writes of a handler happen together, or not at all when it
 * throws.
 *
 * The state is the object's fields: tracked structures (`map`, `list`, …) by what changes, all others as a whole, as
 * values with a structured clone.
 */
import { AppError } from "../vocabulary/errors.ts";
import { SESSION_BASE, SESSION_SLOT, type SessionPort, type SessionSlot } from "./session_slot.ts";

export type { CheckpointPolicy } from "./checkpoint_policy.ts";
export type { WhenThrown } from "./when_thrown.ts";

/** Client or origin that is attached to a stateful session, with a way to send it messages. */
export interface From {
  /** Kind of the peer: a client, or the origin (the server behind the session). */
  readonly kind: "client" | "origin";
  /** Id of the peer, the same for as long as it is attached. */
  readonly id: string;
  /**
   * Sends the peer a message, of 4 MiB at most, when the handler ends. A peer that has gone gets nothing.
   *
   * @throws AppError `value_invalid` for another type; `limit_value` for a longer message, or where a handler sends
   *     more than 24 MiB or 65,536 messages to all peers together.
   */
  send(message: string | Uint8Array): void;
  /**
   * Closes the peer's connection when the handler ends, after the messages that it was sent before; `onClose` follows
   * when it has gone.
   *
   * @param code the WebSocket's close code: 1000 (when absent), or from 3000 to 4999.
   * @param reason a text for the peer's program, of up to 123 bytes.
   * @throws AppError `value_invalid` for another code, or a longer reason.
   */
  close(code?: number, reason?: string): void;
}

/** Cache that the stateful sessions of an isolate share: values that are costly to make, and the same for all. */
export interface SessionCache {
  /**
   * Returns a value by its name (1 to 200 characters, the same for all classes of the app), as a frozen copy: the value
   * that a session of this isolate has made before, or the one that `load` makes now. A value that is read is written
   * to the session's log, and may have 256 KiB: keep it in a variable of the handler, and read it once.
   *
   * @param options `ttlMs`: a value that was made more milliseconds ago is made anew, by this read for all sessions;
   *     left out: none is too old.
   * @throws AppError `value_invalid` for a name, a time or a value that can't be; `limit_value` for a longer value;
   *     what `load` throws.
   */
  read<T>(name: string, load: () => T | Promise<T>, options?: { readonly ttlMs?: number }): Promise<T>;
}

/**
 * Base of the classes named in `defineApp({ sessions })`. `E` is the type of the app's env. Public methods of a class
 * other than its handlers (`onMessage`, …) can be called from outside: `env.sessions.NAME.get(id).method(…)`.
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
 * - `whenThrown` ({@link WhenThrown}), the treatment of a message, a timer, an attachment or a departure whose handler
 *   throws, or loops. The state is as it was before in any case: `"reject"` (the default) gives it up, tells the sender
 *   of a message, and says so in the app's log; `"retry"` tries it again, up to five times within ten seconds, and then
 *   as `"park"`; `"park"` has the session stand still until an operator resumes it (`sojourn sessions resume`) or other
 *   code is deployed. Requests and method calls tell their caller, always.
 * - `origin`, the address of the server behind the session (`http:`, `https:`, `ws:`, `wss:` or `tcp:`), which knows
 *   nothing of Sojourn.
 * - `durability`, the holders of its log: `"owners"` (the default), the disks of sites; `"hosts"`, beside these the
 *   attached clients with the library and the attached agents: messages to them leave at once, with the log that they
 *   follow from, and the stateful session goes on from the log that they hold where its home is lost, with its disk or
 *   not. All others are answered when the log is on disks, as ever (CESSNA, section 4).
 * - `standby`: `true` has the nearest site that keeps its log run the session along, so that it goes on there at once
 *   when its home is lost. That costs that site the memory of the state, and the time of every handler once more.
 * - `retention`, `{ logMs }`: the time in milliseconds for which operators can read its log when it has ended (`sojourn
 *   sessions log`), up to the limit in the site's file (`limits.statefulLogMs`, an hour by default); 0 keeps nothing.
 * - `checkpoint` ({@link CheckpointPolicy}), how often its fields are written down: the less often, the more is
 *   replayed when a handler throws, or at another site.
 * - `shape`, a number that rises when its fields change in a way that their names do not tell ({@link Session.migrate}).
 */
export abstract class Session<E = unknown> {
  readonly #port: SessionPort;

  /** Makes a session: the platform does, when the session is first used. @throws AppError `not_available` elsewhere. */
  constructor() {
    const slot = (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT];
    const port = slot?.making;
    if (slot === undefined || port === undefined) {
      throw new AppError(
        "not_available",
        "a stateful session is not made with new: env.sessions.NAME.get(id) addresses it, and it begins with its first use",
      );
    }
    // A field whose initialiser makes another session gets no port from this one.
    slot.making = undefined;
    this.#port = port;
  }

  /** Env of the app: the store and all else that was declared. */
  get env(): E {
    return this.#port.env as E;
  }

  /** Cache of values that the stateful sessions of an isolate share. */
  get cache(): SessionCache {
    return { read: (name, load, of) => this.#port.readCache(name, load, of?.ttlMs) as Promise<never> };
  }

  /** Id by which the session is addressed. */
  get id(): string {
    return this.#port.id;
  }

  /** Clients that are attached now, but for those that the session has closed. */
  get clients(): readonly From[] {
    return this.#port.attached("client");
  }

  /** Client that is attached, while there is exactly one. */
  get client(): From | undefined {
    const [only, ...more] = this.#port.attached("client");
    return more.length === 0 ? only : undefined;
  }

  /** WebSocket or TCP server that the class names (`static origin`), while it is attached. */
  get origin(): From | undefined {
    return this.#port.attached("origin").at(-1);
  }

  /** Handles the attachment of a client or of the origin. */
  onOpen?(from: From): void | Promise<void>;
  /** Handles a message of a client or of the origin. */
  onMessage?(message: string | Uint8Array, from: From): void | Promise<void>;
  /** Handles the departure of a client or of the origin. */
  onClose?(from: From): void | Promise<void>;
  /** Handles a timer set by {@link Session.setTimer} that is due. */
  onTimer?(name: string): void | Promise<void>;
  /** Answers an HTTP request to this stateful session. */
  fetch?(request: Request): Response | Promise<Response>;
  /**
   * Takes over the fields of a stateful session that a version of this class with a lower `static shape` (0 where it
   * had none) has left behind. It is called before any other method, with the fields as this version begins with them.
   * Old fields that it does not take are gone. Tracked structures are handed over as such: read them, or put one into a
   * field.
   *
   * Its result may depend on the old fields alone, and is complete when it returns: it may run again, at another site.
   * Where it throws, everything stays as it was, for a version that does better.
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
   * @param old the old fields, by their names.
   * @param shape the `static shape` of the class that wrote them.
   */
  migrate?(old: Record<string, unknown>, shape: number): void;

  /**
   * Sets the timer of that name, in place of an earlier one: `onTimer(name)` is called in `ms` milliseconds. The timer
   * is part of the state, and goes off wherever the session is then; a `setTimeout` keeps the session from resting.
   *
   * @throws AppError `value_invalid` for a name of other than 1 to 200 characters, or a time of more than 100 years;
   *     `limit_timers` where 1,000 timers are set already; `no_request` while the object is being made.
   */
  setTimer(name: string, ms: number): void {
    this.#port.setTimer(name, ms);
  }

  /** Clears the timer of that name. @throws AppError `no_request` while the object is being made. */
  clearTimer(name: string): void {
    this.#port.clearTimer(name);
  }

  /**
   * Ends this stateful session when the handler ends: its state is dropped, and its id begins anew if it is used.
   *
   * @throws AppError `no_request` while the object is being made.
   */
  end(): void {
    this.#port.end();
  }
}

Object.defineProperty(Session.prototype, SESSION_BASE, { value: true });
