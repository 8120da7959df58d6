/**
 * A stand-in for `Replica.system` over a Map: what the control plane's tests need of a replica, without a tree.
 */
import type { ListOptions, Replica, StoreCheck, StoreMutation, WriteResult } from "../../../store/api/api.ts";
import type { Key } from "../../../store/model/key.ts";
import { holds, type Range } from "../../../store/model/range.ts";
import { compareVersions, type Row } from "../../../store/model/row.ts";

/** Rows in memory with watches, checks and a count of writes. */
export class MemorySystem {
  readonly rows = new Map<Key, Row>();
  readonly #watches = new Set<{ ranges: readonly Range[]; changed: () => void }>();
  #clock = 1;
  /** Writes that still succeed; those after them reject. */
  failAfterWrites = Infinity;

  get(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    return Promise.resolve(keys.map((key) => this.rows.get(key)));
  }

  list(range: Range, options: ListOptions = {}): Promise<Row[]> {
    const rows = [...this.rows.values()].filter((row) => holds(range, row.key))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
    if (options.reverse) rows.reverse();
    return Promise.resolve(rows.slice(0, options.limit));
  }

  write(mutations: readonly StoreMutation[], checks: readonly StoreCheck[] = []): Promise<WriteResult> {
    if (this.failAfterWrites-- <= 0) return Promise.reject(new Error("the disk is full"));
    for (const check of checks) {
      const row = this.rows.get(check.key);
      const same = check.version === null
        ? row === undefined
        : row !== undefined && compareVersions(row, check.version) === 0;
      if (!same) return Promise.resolve({ ok: false });
    }
    const version = { clock: this.#clock++, replica: 1 };
    for (const mutation of mutations) {
      if (mutation.kind === "set") {
        const { key, value } = mutation;
        this.rows.set(key, { key, value, ...version, position: version.clock, known: 0, expiresAtMs: 0 });
      } else this.rows.delete(mutation.key);
    }
    for (const watch of this.#watches) {
      if (mutations.some((m) => watch.ranges.some((range) => holds(range, m.key)))) watch.changed();
    }
    return Promise.resolve({ ok: true, version });
  }

  watch(ranges: readonly Range[], changed: () => void): () => void {
    const watch = { ranges, changed };
    this.#watches.add(watch);
    return () => void this.#watches.delete(watch);
  }

  durable(): Promise<void> {
    return Promise.resolve();
  }
}

/** Type check: it stands where `Replica.system` stands. */
export const asSystem = (system: MemorySystem): Replica["system"] => system;
