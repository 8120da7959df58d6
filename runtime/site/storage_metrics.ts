/** Metrics of commits and syncs of a site's storage: most of a site's waiting is for the disk. */
import type { DiskCommit, Storage } from "../../store/model/ports.ts";
import { COUNTS, type Family, Histogram, SECONDS } from "../telemetry/mod.ts";

/** Upper bounds of the bytes of a commit: 1 KiB … 16 MiB. */
const BYTES = [10, 12, 14, 16, 18, 20, 22, 24].map((power) => 2 ** power);

/** Metrics of one site's storage. */
export class StorageMetrics {
  readonly #commits = new Histogram({
    name: "store.commit.duration",
    unit: "s",
    description: "Duration of commits to the disk, the sync included.",
  }, SECONDS);
  readonly #syncs = new Histogram({
    name: "store.fsync.duration",
    unit: "s",
    description:
      "Duration of syncs of the disk; sites on SQLite only, since Deno KV does not tell of its own.",
  }, SECONDS);
  readonly #rows = new Histogram({
    name: "store.commit.rows",
    unit: "{row}",
    description: "Rows of a commit: how many writers shared one sync.",
  }, COUNTS);
  readonly #bytes = new Histogram({
    name: "store.commit.size",
    unit: "By",
    description: "Keys and values of a commit.",
  }, BYTES);
  readonly #commit = this.#commits.of([]);
  readonly #sync = this.#syncs.of([]);
  readonly #rowCounts = this.#rows.of([]);
  readonly #byteCounts = this.#bytes.of([]);

  /** Families of all metrics of the storage. */
  get families(): Family[] {
    return [this.#commits, this.#syncs, this.#rows, this.#bytes];
  }

  /** Counts a sync that has ended. */
  readonly synced = (ms: number): void => this.#sync.observe(ms / 1000);

  /** Returns the same storage, its commits counted. */
  measured(storage: Storage): Storage {
    return {
      load: () => storage.load(),
      get: (key) => storage.get(key),
      getMany: (keys, bytesMax) => storage.getMany(keys, bytesMax),
      scan: (range, options) => storage.scan(range, options),
      journal: (after, upTo, limit, bytesMax) => storage.journal(after, upTo, limit, bytesMax),
      bytes: () => storage.bytes(),
      close: () => storage.close(),
      commit: (commit) => this.#measure(storage, commit),
    };
  }

  async #measure(storage: Storage, commit: DiskCommit): Promise<void> {
    const begunMs = performance.now();
    await storage.commit(commit);
    this.#commit.observe((performance.now() - begunMs) / 1000);
    this.#rowCounts.observe(commit.rows.length);
    let bytes = 0;
    for (const { key, value } of commit.rows) bytes += key.length + (value?.length ?? 0);
    this.#byteCounts.observe(bytes);
  }
}
