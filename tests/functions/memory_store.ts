/**
 * A StoreClient in memory for tests of the app API: one site, versions from a counter, merges resolved at once,
 * expiry against a clock that the test moves. Counts its calls, so that tests can bound round trips.
 */
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoreClient,
  StoredRow,
} from "../../functions/vocabulary/store_client.ts";
import { decodeValue, encodeValue } from "../../functions/values/value.ts";
import { KvU64 } from "../../functions/values/kv_u64.ts";
import type { Key } from "../../store/model/key.ts";

interface Held {
  readonly value: Uint8Array;
  readonly versionstamp: string;
  readonly expiresAtMs: number;
}

interface Watcher {
  readonly ranges: readonly { start: Key; end: Key }[];
  wake: () => void;
}

/** A store of one site. */
export class MemoryStore implements StoreClient {
  readonly rows = new Map<Key, Held>();
  /** Store calls so far, by kind, with what they asked for. */
  readonly calls: { kind: "get" | "list" | "commit"; size: number; level?: ReadLevel }[] = [];
  nowMs = 1_000_000;
  /** A list ends with the row that brings its values to so many bytes. */
  replyBytesMax = 1024 * 1024;
  #clock = 0;
  readonly #watchers = new Set<Watcher>();

  get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    this.calls.push({ kind: "get", size: keys.length, level });
    return Promise.resolve(keys.map((key) => {
      const held = this.#live(key);
      return held === undefined ? null : { key, value: held.value, versionstamp: held.versionstamp };
    }));
  }

  list(request: ListRequest): Promise<RowPage> {
    this.calls.push({ kind: "list", size: request.limit, level: request.level });
    const keys = [...this.rows.keys()].filter((k) => k >= request.start && k < request.end && this.#live(k))
      .sort();
    if (request.reverse) keys.reverse();
    const rows: StoredRow[] = [];
    let bytes = 0;
    for (const key of keys) {
      const held = this.#live(key);
      if (held === undefined) continue;
      rows.push({ key, value: held.value, versionstamp: held.versionstamp });
      bytes += held.value.length;
      // As a site, it does not look whether there is another row.
      if (rows.length >= request.limit || bytes >= this.replyBytesMax) {
        return Promise.resolve({ rows, more: true });
      }
    }
    return Promise.resolve({ rows, more: false });
  }

  commit(checks: readonly Check[], mutations: readonly Mutation[]): Promise<CommitResult> {
    this.calls.push({ kind: "commit", size: mutations.length });
    for (const { key, versionstamp } of checks) {
      if ((this.#live(key)?.versionstamp ?? null) !== versionstamp) return Promise.resolve({ ok: false });
    }
    const versionstamp = (++this.#clock).toString(16).padStart(14, "0") + "000001";
    for (const mutation of mutations) this.#apply(mutation, versionstamp);
    for (const watcher of this.#watchers) {
      const hit = mutations.some((m) => watcher.ranges.some((r) => m.key >= r.start && m.key < r.end));
      if (hit) watcher.wake();
    }
    return Promise.resolve({ ok: true, versionstamp });
  }

  async *watch(ranges: readonly { start: Key; end: Key }[], signal: AbortSignal): AsyncIterable<void> {
    let dirty = Promise.withResolvers<void>();
    const watcher: Watcher = { ranges, wake: () => dirty.resolve() };
    const stop = () => dirty.resolve();
    this.#watchers.add(watcher);
    signal.addEventListener("abort", stop);
    try {
      while (!signal.aborted) {
        yield;
        await dirty.promise;
        dirty = Promise.withResolvers<void>();
      }
    } finally {
      this.#watchers.delete(watcher);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Watches under way. */
  get watching(): number {
    return this.#watchers.size;
  }

  #live(key: Key): Held | undefined {
    const held = this.rows.get(key);
    return held === undefined || held.expiresAtMs !== 0 && held.expiresAtMs <= this.nowMs ? undefined : held;
  }

  #apply(mutation: Mutation, versionstamp: string): void {
    if (mutation.kind === "delete") {
      this.rows.delete(mutation.key);
      return;
    }
    const value = mutation.kind === "set"
      ? mutation.value
      : this.#merged(mutation.kind, mutation.key, mutation.value);
    const expireInMs = mutation.kind === "set" ? mutation.expireInMs : undefined;
    const expiresAtMs = expireInMs === undefined ? 0 : this.nowMs + expireInMs;
    this.rows.set(mutation.key, { value, versionstamp, expiresAtMs });
  }

  #merged(kind: "sum" | "min" | "max", key: Key, contribution: Uint8Array): Uint8Array {
    const held = this.#live(key);
    const add = decodeValue(contribution), old = held === undefined ? undefined : decodeValue(held.value);
    if (add instanceof KvU64 && old instanceof KvU64) {
      const [a, b] = [old.value, add.value];
      return encodeValue(
        new KvU64(kind === "sum" ? BigInt.asUintN(64, a + b) : (kind === "min") === (a < b) ? a : b),
      );
    }
    if (typeof add === "number" && typeof old === "number") {
      return encodeValue(
        kind === "sum" ? old + add : kind === "min" ? Math.min(old, add) : Math.max(old, add),
      );
    }
    return contribution;
  }
}
