/**
 * A storage that can be broken while it is used, around the real one: the replica above it sees the same as of a disk
 * that is full or dying, so that production's own error path runs.
 *
 * B1  "full" refuses a commit before anything of it is written. "fail" lets it through to the disk and then reports a
 *     failure, the worse case: a commit that was never acknowledged may be there after all. Reads fail too then.
 * B2  A commit that was refused leaves this storage failed for good (Storage, S3), whatever the disk does later: a
 *     site recovers by starting again.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Key } from "../../store/model/key.ts";
import type { DiskCommit, ScanOptions, Storage } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import type { Position, Row } from "../../store/model/row.ts";
import type { DiskState } from "./actions.ts";

/** A storage with faults. */
export class FaultStorage implements Storage {
  readonly #inner: Storage;
  #failed: StoreUnavailable | null = null;
  /** State of the disk from now on. */
  state: DiskState;

  constructor(inner: Storage, state: DiskState) {
    this.#inner = inner;
    this.state = state;
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#read(() => this.#inner.load());
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(() => this.#inner.get(key));
  }

  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]> {
    return this.#read(() => this.#inner.getMany(keys, bytesMax));
  }

  scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    return this.#read(() => this.#inner.scan(range, options));
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]> {
    return this.#read(() => this.#inner.journal(after, upTo, limit, bytesMax));
  }

  bytes(): Promise<number> {
    return this.#inner.bytes();
  }

  async commit(commit: DiskCommit): Promise<void> {
    if (this.#failed !== null) throw this.#failed;
    if (this.state === "full") {
      throw this.#failed = failure("cannot commit: database or disk is full (ENOSPC)");
    }
    await this.#inner.commit(commit);
    if (this.state === "fail") throw this.#failed = failure("cannot sync: Input/output error (EIO)"); // B1
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #read<T>(look: () => Promise<T>): Promise<T> {
    return this.state === "fail" ? Promise.reject(failure("cannot read: Input/output error (EIO)")) : look();
  }
}

const failure = (what: string): StoreUnavailable =>
  new StoreUnavailable("disk_failed", `${what}; injected by \`sojourn chaos disk\``);
