/**
 * The running request, for code that was not handed its env: `import { env } from "sojourn"`, `Deno.openKv()`.
 *
 * An app's bundle holds its own copy of this module, the trusted bootstrap another. Both find the running request
 * through one slot under a registered symbol on globalThis, which the bootstrap fills before it loads an app.
 * This file is in every app's bundle, so it must not reach node: or npm: imports.
 *
 * X1  Outside a running request every use of `env` and `ambientKv` throws `no_request`: nothing happens at module
 *     load, and no request sees another's session.
 */
import type { BaseEnv, EnvOf } from "./define.ts";
import { AppError } from "./vocabulary/errors.ts";
import type {
  Kv,
  KvAtomic,
  KvCommitResult,
  KvEnqueueOptions,
  KvEntryMaybe,
  KvKey,
  KvListIterator,
  KvListOptions,
  KvListSelector,
} from "./kv_interface.ts";
import type { KvListener, KvListeners } from "./kv_listeners.ts";
import type { ReadLevel } from "./vocabulary/store_client.ts";

/** Symbol of the slot, where both copies look. */
export const CONTEXT_SLOT: unique symbol = Symbol.for("sojourn.context") as never;

/** Content of the slot. */
export interface ContextSlot {
  /** Returns the env of the request that this code runs for. */
  current(): BaseEnv | undefined;
  /** Returns that request's `ctx.waitUntil`. */
  waitUntil?(): ((promise: Promise<unknown>) => void) | undefined;
}

/** Returns the env of the running request. @throws AppError `no_request`. */
function running(what: string): BaseEnv {
  const slot = (globalThis as { [CONTEXT_SLOT]?: ContextSlot })[CONTEXT_SLOT];
  const env = slot?.current();
  if (env === undefined) {
    throw new AppError("no_request", `${what} works only while a request runs, not when the module loads`);
  }
  return env;
}

/** Handler of the proxy that stands for the running request's env all the time. */
const handler: ProxyHandler<object> = {
  get: (_, name) => Reflect.get(running("env"), name),
  has: (_, name) => Reflect.has(running("env"), name),
  ownKeys: () => Reflect.ownKeys(running("env")),
  getOwnPropertyDescriptor: (_, name) => {
    const found = Reflect.getOwnPropertyDescriptor(running("env"), name);
    // A proxy may not report what its empty target lacks as fixed.
    return found && { ...found, configurable: true };
  },
  set: () => false,
  defineProperty: () => false,
  deleteProperty: () => false,
};

/**
 * Env of the running request, for code that was not handed it. Each use throws an AppError `no_request` where no
 * request runs.
 */
export const env = new Proxy({}, handler) as EnvOf;

/** The running request's `env.kv`: code can hold it before any request runs. */
export class AmbientKv implements Kv {
  get<T = unknown>(key: KvKey, options?: { consistency?: ReadLevel }): Promise<KvEntryMaybe<T>> {
    return kv().get<T>(key, options);
  }
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: ReadLevel },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> }> {
    return kv().getMany<T>(keys, options);
  }
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): Promise<KvCommitResult> {
    return kv().set(key, value, options);
  }
  delete(key: KvKey): Promise<void> {
    return kv().delete(key);
  }
  list<T = unknown>(selector: KvListSelector, options?: KvListOptions): KvListIterator<T> {
    return kv().list<T>(selector, options);
  }
  atomic(): KvAtomic {
    return kv().atomic();
  }
  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }> {
    return kv().watch<T>(keys, options);
  }
  enqueue(value: unknown, options?: KvEnqueueOptions): Promise<KvCommitResult> {
    return kv().enqueue(value, options);
  }
  listenQueue(handler: KvListener): Promise<void> {
    return kv().listenQueue(handler);
  }
  commitVersionstamp(): symbol {
    return kv().commitVersionstamp();
  }
  close(): void {}
  [Symbol.dispose](): void {}
}

const kv = (): Kv => running("kv").kv;

/** The running request's KV, wherever it is asked for. */
export const ambientKv: Kv = new AmbientKv();

/** Answer of `Deno.openKv()` inside an app: a handle of its own, which listens to the KV's queue until it is closed. */
export class OpenedKv extends AmbientKv {
  readonly #listeners: KvListeners;
  #isClosed = false;
  /** What ends each of its listeners; null: it is at its end, as `using` has it too. */
  #closing: (() => void)[] | null = [];

  constructor(listeners: KvListeners) {
    super();
    this.#listeners = listeners;
  }

  override async listenQueue(handler: KvListener): Promise<void> {
    if (this.#isClosed) throw new Error("Queue already closed");
    if (this.#closing === null) return; // as in Deno
    const { ended, close } = this.#listeners.listen(handler);
    this.#closing.push(close);
    await ended;
  }

  override close(): void {
    this.#isClosed = true;
    this[Symbol.dispose]();
  }

  override [Symbol.dispose](): void {
    for (const close of this.#closing ?? []) close();
    this.#closing = null;
  }
}
