/**
 * The batch of reads: gets that are asked for in one turn of the event loop travel as one store call.
 *
 * Life of a batch: the first `get` opens it and schedules a microtask → further gets of that level join → the
 * microtask sends it. One request has one ReadBatch.
 */
import type { Key } from "../store/model/key.ts";
import { GET_MANY_MAX } from "./vocabulary/limits.ts";
import type { ReadLevel, StoreClient, StoredRow } from "./vocabulary/store_client.ts";

interface Waiter {
  readonly resolve: (row: StoredRow | null) => void;
  readonly reject: (reason: unknown) => void;
}

interface OpenBatch {
  readonly level: ReadLevel;
  readonly keys: Key[];
  readonly waiters: Waiter[];
}

/** Joiner of the gets that one request makes in one turn. */
export class ReadBatch {
  readonly #store: StoreClient;
  /** Batch that further gets of its level may join. */
  #open: OpenBatch | undefined;

  constructor(store: StoreClient) {
    this.#store = store;
  }

  /** Returns one row. */
  get(key: Key, level: ReadLevel): Promise<StoredRow | null> {
    const open = this.#open;
    const batch = open !== undefined && open.level === level && open.keys.length < GET_MANY_MAX
      ? open
      : this.#begin(level);
    return new Promise((resolve, reject) => {
      batch.keys.push(key);
      batch.waiters.push({ resolve, reject });
    });
  }

  #begin(level: ReadLevel): OpenBatch {
    const batch: OpenBatch = { level, keys: [], waiters: [] };
    this.#open = batch;
    queueMicrotask(() => {
      if (this.#open === batch) this.#open = undefined;
      void this.#send(batch);
    });
    return batch;
  }

  async #send(batch: OpenBatch): Promise<void> {
    try {
      const rows = await this.#store.get(batch.keys, batch.level);
      for (const [i, waiter] of batch.waiters.entries()) waiter.resolve(rows[i] ?? null);
    } catch (error) {
      for (const waiter of batch.waiters) waiter.reject(error);
    }
  }
}
