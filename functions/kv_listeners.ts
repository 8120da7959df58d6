/**
 * The listeners of an app's KV in one isolate: `listenQueue` while the module loads adds them, and messages of the KV's
 * queue are handled by them.
 *
 * KVL1  Listeners are added while the module loads, and at no other time: the manifest says whether there are some, so
 *      that each site works messages off, whether a request came there or not.
 * KVL2  Each message is handled by one listener, in turn; those of a handle that is closed are given none.
 */
import { AppError } from "./vocabulary/errors.ts";

// deno-lint-ignore no-explicit-any -- Deno.Kv's own signature, which handlers are written against
export type KvListener = (value: any) => Promise<void> | void;

interface Listening {
  readonly handler: KvListener;
  readonly ended: PromiseWithResolvers<void>;
}

/** See the file's header. */
export class KvListeners {
  #isLoading = true;
  #hasSome = false;
  readonly #open: Listening[] = [];
  #next = 0;

  /** Adds a listener (KVL1). @returns what resolves once it is closed, and what closes it. */
  listen(handler: KvListener): { readonly ended: Promise<void>; readonly close: () => void } {
    if (typeof handler !== "function") throw new TypeError("kv.listenQueue: a handler is missing");
    if (!this.#isLoading) {
      throw new AppError(
        "not_available",
        "kv.listenQueue works while the module loads, not while a request runs: call it at the module's top level",
      );
    }
    this.#hasSome = true;
    const one: Listening = { handler, ended: Promise.withResolvers() };
    this.#open.push(one);
    return {
      ended: one.ended.promise,
      close: () => {
        const place = this.#open.indexOf(one);
        if (place >= 0) this.#open.splice(place, 1);
        one.ended.resolve();
      },
    };
  }

  /** Ends the time in which listeners are added. @returns whether there are any. */
  loaded(): boolean {
    this.#isLoading = false;
    return this.#hasSome;
  }

  /** Has a listener handle a value (KVL2). @throws what it throws */
  async handle(value: unknown): Promise<void> {
    const listening = this.#open[this.#next++ % this.#open.length];
    if (listening === undefined) {
      throw new AppError("not_available", "nobody listens to the KV's queue here: each handle was closed");
    }
    await listening.handler(value);
  }
}
