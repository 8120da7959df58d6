/**
 * The atomic operation: checks and mutations are collected and checked here, and sent by `commit`.
 *
 * Q3  A call that exceeds a limit throws, before anything is sent.
 * Q4  Messages to queues go with the mutations: all of them are written, or none. Each counts as a mutation.
 */
import type { Key } from "../store/model/key.ts";
import { parseVersionstamp } from "../store/model/row.ts";
import { KvTypeError, notAvailable } from "./vocabulary/errors.ts";
import { packUserKey } from "./key_space.ts";
import { enqueued } from "./kv_enqueue.ts";
import type {
  KvAtomic,
  KvCheck,
  KvCommitError,
  KvCommitResult,
  KvEnqueueOptions,
  KvKey,
  KvMutation,
  KvNumber,
} from "./kv_interface.ts";
import { isKvU64, KvU64 } from "./values/kv_u64.ts";
import { ATOMIC_BYTES_MAX, ATOMIC_CHECKS_MAX, ATOMIC_MUTATIONS_MAX } from "./vocabulary/limits.ts";
import type { Check, Mutation, StoreClient } from "./vocabulary/store_client.ts";
import { encodeValue } from "./values/value.ts";
import type { SendOptions } from "./queue.ts";
import type { RequestQueue } from "./request_queue.ts";
import type { QueuedMessage } from "./vocabulary/queue_sender.ts";

/** Checks and mutations on their way to the store, within the limits. */
export class WriteBatch {
  readonly #checks: Check[] = [];
  readonly #mutations: Mutation[] = [];
  readonly #sends: QueuedMessage[] = [];
  #bytes = 0;

  /** Number of mutations. */
  get size(): number {
    return this.#mutations.length;
  }

  /** Adds a check. @throws KvTypeError `limit_atomic`, or `key_invalid` for a text that is no versionstamp. */
  check(key: Key, versionstamp: string | null): void {
    if (
      versionstamp !== null && (typeof versionstamp !== "string" || parseVersionstamp(versionstamp) === null)
    ) {
      const got = JSON.stringify(versionstamp);
      throw new KvTypeError(
        "key_invalid",
        `Invalid check: a versionstamp is 20 hexadecimal digits or null, not ${got}`,
      );
    }
    if (this.#checks.length >= ATOMIC_CHECKS_MAX) {
      throw new KvTypeError("limit_atomic", `Too many checks (max ${ATOMIC_CHECKS_MAX})`);
    }
    this.#checks.push({ key, versionstamp });
  }

  /** Adds a mutation. @throws KvTypeError `limit_atomic`. */
  add(mutation: Mutation): void {
    this.#grows(mutation.key.length + (mutation.kind === "delete" ? 0 : mutation.value.length));
    this.#mutations.push(mutation);
  }

  /** Adds a message to a queue. @throws KvTypeError `limit_atomic`. */
  send(message: QueuedMessage): void {
    this.#grows(message.body.length);
    this.#sends.push(message); // Q4
  }

  #grows(bytes: number): void {
    if (this.#mutations.length + this.#sends.length >= ATOMIC_MUTATIONS_MAX) {
      throw new KvTypeError("limit_atomic", `Too many mutations (max ${ATOMIC_MUTATIONS_MAX})`);
    }
    this.#bytes += bytes;
    if (this.#bytes > ATOMIC_BYTES_MAX) {
      throw new KvTypeError("limit_atomic", `Total mutation size too large (max ${ATOMIC_BYTES_MAX} bytes)`);
    }
  }

  /** Sends all checks, mutations and messages. */
  commit(store: StoreClient): Promise<KvCommitResult | KvCommitError> {
    const checks = this.#checks, mutations = this.#mutations, sends = this.#sends;
    return sends.length === 0 ? store.commit(checks, mutations) : store.commit(checks, mutations, sends);
  }
}

/** Finds a queue of the app by its name. @throws AppError `not_available` where the app declares none of that name. */
export type SendingQueue = (name: string) => RequestQueue;

export const noQueue: SendingQueue = (name) => {
  throw notAvailable(`the queue ${name} here`);
};

/** Messages that are to be sent with an atomic operation: each is checked against its queue's schema when it is committed. */
export class AtomicSends {
  readonly #queueOf: SendingQueue;
  readonly #sends: { readonly queue: RequestQueue; readonly body: unknown; readonly options: SendOptions }[] =
    [];

  constructor(queueOf: SendingQueue) {
    this.#queueOf = queueOf;
  }

  add(name: string, body: unknown, options: SendOptions = {}): void {
    this.#sends.push({ queue: this.#queueOf(name), body, options });
  }

  /** Adds all of them to a batch. @throws AppError as `send` of a queue does; KvTypeError `limit_atomic`. */
  async into(batch: WriteBatch): Promise<void> {
    for (const { queue, body, options } of this.#sends) {
      batch.send({ queue: queue.name, ...await queue.prepared(body, options) });
    }
    this.#sends.length = 0;
  }
}

/** Atomic operation of `env.kv`. */
export class KvAtomicOperation implements KvAtomic {
  readonly #store: StoreClient;
  readonly #batch = new WriteBatch();
  readonly #queueOf: SendingQueue;
  /** Null: nothing is sent, as in most. */
  #sends: AtomicSends | null = null;

  constructor(store: StoreClient, queueOf: SendingQueue = noQueue) {
    this.#store = store;
    this.#queueOf = queueOf;
  }

  check(...checks: KvCheck[]): this {
    for (const { key, versionstamp } of checks) this.#batch.check(packUserKey(key), versionstamp ?? null);
    return this;
  }

  mutate(...mutations: KvMutation[]): this {
    for (const mutation of mutations) this.#mutate(mutation);
    return this;
  }

  #mutate(mutation: KvMutation): void {
    switch (mutation.type) {
      case "set":
        this.set(mutation.key, mutation.value, mutation);
        return;
      case "delete":
        this.delete(mutation.key);
        return;
      case "sum":
      case "min":
      case "max":
        this.#merge(mutation.type, mutation.key, mutation.value);
        return;
      default:
        throw new KvTypeError(
          "value_invalid",
          `Invalid mutation type: ${(mutation as { type: unknown }).type}`,
        );
    }
  }

  sum(key: KvKey, n: KvNumber): this {
    return this.#merge("sum", key, n);
  }

  min(key: KvKey, n: KvNumber): this {
    return this.#merge("min", key, n);
  }

  max(key: KvKey, n: KvNumber): this {
    return this.#merge("max", key, n);
  }

  set(key: KvKey, value: unknown, options?: { expireIn?: number }): this {
    const packed = packUserKey(key);
    const expireInMs = expiry(options?.expireIn);
    const bytes = encodeValue(value);
    this.#batch.add(
      expireInMs === undefined
        ? { kind: "set", key: packed, value: bytes }
        : { kind: "set", key: packed, value: bytes, expireInMs },
    );
    return this;
  }

  delete(key: KvKey): this {
    this.#batch.add({ kind: "delete", key: packUserKey(key) });
    return this;
  }

  send(queue: string, body: unknown, options?: SendOptions): this {
    (this.#sends ??= new AtomicSends(this.#queueOf)).add(queue, body, options);
    return this;
  }

  enqueue(value: unknown, options?: KvEnqueueOptions): this {
    this.#batch.send(enqueued(value, options));
    return this;
  }

  commit(): Promise<KvCommitResult | KvCommitError> {
    const commit = () => this.#batch.commit(this.#store);
    return this.#sends === null ? commit() : this.#sends.into(this.#batch).then(commit);
  }

  #merge(kind: "sum" | "min" | "max", key: KvKey, n: KvNumber): this {
    const number = typeof n === "bigint" ? new KvU64(n) : n;
    if (typeof number !== "number" && !isKvU64(number)) {
      throw new KvTypeError(
        "value_invalid",
        `Value must be a bigint: received ${typeof n} (${kind} also takes a KvU64 and a number)`,
      );
    }
    if (typeof number === "number" && !Number.isFinite(number)) {
      throw new KvTypeError("value_invalid", `${kind} takes a finite number, not ${number}`);
    }
    this.#batch.add({ kind, key: packUserKey(key), value: encodeValue(number) });
    return this;
  }
}

/** Longest time to expiry: beyond it there is no date (ECMAScript has none, and Deno takes no such time). */
const EXPIRE_IN_MS_MAX = 8.2e15;

/**
 * Returns the time to expiry. A row that has already expired is stored for a millisecond, so that it replaces the one
 * before.
 */
function expiry(expireIn: unknown): number | undefined {
  if (expireIn === undefined) return undefined;
  if (typeof expireIn !== "number" || !Number.isInteger(expireIn) || expireIn < 0) {
    throw new KvTypeError(
      "value_invalid",
      `expireIn must be a non-negative integer: received ${String(expireIn)}`,
    );
  }
  if (expireIn > EXPIRE_IN_MS_MAX) {
    throw new KvTypeError("value_invalid", `Invalid mutation: expireIn is too large: ${expireIn}`);
  }
  return Math.max(1, expireIn);
}
