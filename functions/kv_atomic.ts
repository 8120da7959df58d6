/**
 * The atomic operation: checks and mutations are collected and checked here, and sent by `commit`.
 *
 * Q3  A call that exceeds a limit throws, before anything is sent.
 */
import type { Key } from "../store/model/key.ts";
import { parseVersionstamp } from "../store/model/row.ts";
import { KvTypeError, notAvailable } from "./vocabulary/errors.ts";
import { packUserKey } from "./key_space.ts";
import type {
  KvAtomic,
  KvCheck,
  KvCommitError,
  KvCommitResult,
  KvKey,
  KvMutation,
  KvNumber,
} from "./kv_interface.ts";
import { isKvU64, KvU64 } from "./values/kv_u64.ts";
import { ATOMIC_BYTES_MAX, ATOMIC_CHECKS_MAX, ATOMIC_MUTATIONS_MAX } from "./vocabulary/limits.ts";
import type { Check, Mutation, StoreClient } from "./vocabulary/store_client.ts";
import { encodeValue } from "./values/value.ts";

/** Checks and mutations on their way to the store, within the limits. */
export class WriteBatch {
  readonly #checks: Check[] = [];
  readonly #mutations: Mutation[] = [];
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
    if (this.#mutations.length >= ATOMIC_MUTATIONS_MAX) {
      throw new KvTypeError("limit_atomic", `Too many mutations (max ${ATOMIC_MUTATIONS_MAX})`);
    }
    this.#bytes += mutation.key.length + (mutation.kind === "delete" ? 0 : mutation.value.length);
    if (this.#bytes > ATOMIC_BYTES_MAX) {
      throw new KvTypeError("limit_atomic", `Total mutation size too large (max ${ATOMIC_BYTES_MAX} bytes)`);
    }
    this.#mutations.push(mutation);
  }

  /** Sends all checks and mutations. */
  commit(store: StoreClient): Promise<KvCommitResult | KvCommitError> {
    return store.commit(this.#checks, this.#mutations);
  }
}

/** Atomic operation of `env.kv`. */
export class KvAtomicOperation implements KvAtomic {
  readonly #store: StoreClient;
  readonly #batch = new WriteBatch();

  constructor(store: StoreClient) {
    this.#store = store;
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

  enqueue(): this {
    throw notAvailable("kv.atomic().enqueue");
  }

  commit(): Promise<KvCommitResult | KvCommitError> {
    return this.#batch.commit(this.#store);
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
