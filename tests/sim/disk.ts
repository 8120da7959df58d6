/**
 * The simulator's disk: the contract of `Storage` in virtual time, with the freedom the contract leaves used
 * against its reader.
 *
 * Life: `new SimDisk` → commits and reads → `crash()` or `wipe()`, which give the disk that the site's next
 * start finds. A disk that was crashed or wiped answers nothing any more: its process is dead.
 *
 * D1  A commit resolves after a drawn delay; until then a crash loses it, or (drawn) keeps it whole (S2). A process
 *     has one commit under way at most, so that is every prefix of what was not synced. That real disks, which
 *     tear and reorder what was not synced, come to the same is tests/contract/storage_torn_test.ts.
 * D2  While a commit is under way, reads may (drawn) see some of its rows (S1).
 * D4  Rows may rot: reads that meet one say so (S4), and nothing of it is given, until it is put anew or dropped.
 * D3  A disk that failed once rejects every later commit (S3). Of the commit that failed, the next start finds all
 *     or nothing, as drawn.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Key } from "../../store/model/key.ts";
import {
  type Clock,
  DamagedRows,
  type DiskCommit,
  type ScanOptions,
  type Storage,
} from "../../store/model/ports.ts";
import { type Range, WHOLE } from "../../store/model/range.ts";
import type { Position, Row } from "../../store/model/row.ts";
import { MemoryRows } from "../../runtime/storage/memory.ts";

/** What a simulated disk is built from; everything drawn comes from `random`, in the order of calls. */
export interface SimDiskOptions {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Least and greatest virtual time of a commit. */
  readonly commitDelayMs: readonly [number, number];
  /** Least and greatest virtual time of a read; by default reads take a few microtasks only. */
  readonly readDelayMs?: readonly [number, number];
  /** Chance that a crash keeps the unresolved commit. */
  readonly keepChance?: number;
  /** Chance that a commit shows rows before it resolves. */
  readonly earlyChance?: number;
}

interface Under {
  readonly commit: DiskCommit;
  readonly cancel: () => void;
  /** The rows that were shown early, as they were before. */
  readonly before: Map<Key, Row | undefined>;
}

/** Microtasks that a read waits at most, before and after it looks. */
const READ_TURNS_MAX = 3;

/** What was on a disk at some moment. */
export type DiskCopy = Pick<MemoryRows, "copy">;

/** A disk in virtual time. */
export class SimDisk implements Storage {
  readonly #options: SimDiskOptions;
  readonly #rows: MemoryRows;
  /** D4, as they were put. */
  readonly #rotten: WeakSet<Row>;
  #under: Under | null = null;
  #dead = false;
  #failed: string | null = null;
  /** The commit that failed: what the disk has kept of it is unknown until the next start (D3). */
  #doubtful: DiskCommit | null = null;
  #slowness = 1;
  /** Commits that resolved, for probes and checkers. */
  commits = 0;

  constructor(options: SimDiskOptions, rows = new MemoryRows(), rotten = new WeakSet<Row>()) {
    this.#options = options;
    this.#rows = rows;
    this.#rotten = rotten;
  }

  /** How many rows are visible. */
  get size(): number {
    return this.#rows.size;
  }

  /** Power is cut: the disk as the next start finds it. */
  crash(): SimDisk {
    const under = this.#kill();
    const isKept = (under !== null || this.#doubtful !== null) &&
      this.#options.random() < (this.#options.keepChance ?? 0.5);
    if (under !== null && !isKept) undo(this.#rows, under.before);
    const kept = isKept ? under?.commit ?? this.#doubtful : null;
    if (kept !== null) this.#rows.apply(kept);
    return new SimDisk(this.#options, this.#rows, this.#rotten);
  }

  /** What is on it now: of a commit under way nothing. */
  copy(): DiskCopy {
    const copy = this.#rows.copy();
    if (this.#under !== null) undo(copy, this.#under.before);
    return copy;
  }

  /** The disk is lost: a blank one, or one with what was on some disk before. */
  wipe(copy?: DiskCopy): SimDisk {
    this.#kill();
    return new SimDisk(this.#options, copy?.copy());
  }

  /** Every commit from now on, the one under way included, fails as a full or broken disk does. */
  fail(reason = "no space left on the simulated disk"): void {
    this.#failed = reason;
  }

  /** All rows that are visible, rotten ones as they were put: for checkers. */
  held(): Row[] {
    return this.#rows.scan(WHOLE);
  }

  /** A record that is on it. */
  record(name: string): Uint8Array | undefined {
    return this.#rows.records().get(name);
  }

  /** D4. False where there is no such row. */
  rot(key: Key): boolean {
    const row = this.#rows.get(key);
    if (row !== undefined) this.#rotten.add(row);
    return row !== undefined;
  }

  /** Multiplies all delays from now on. */
  slow(factor: number): void {
    this.#slowness = factor;
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#read(() => this.#rows.records());
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(() => this.#whole([this.#rows.get(key)])[0]);
  }

  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]> {
    return this.#read(() => this.#whole(this.#rows.getMany(keys, bytesMax)));
  }

  scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    return this.#read(() => this.#whole(this.#rows.scan(range, options)));
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]> {
    return this.#read(() => this.#whole(this.#rows.journal(after, upTo, limit, bytesMax)));
  }

  bytes(): Promise<number> {
    return this.#read(() => this.#rows.bytes);
  }

  commit(commit: DiskCommit): Promise<void> {
    if (this.#dead) return never();
    if (this.#failed !== null) return Promise.reject(failure(this.#failed));
    if (this.#under !== null) {
      return Promise.reject(new Error("a commit was issued before the last one had settled"));
    }
    const own = copy(commit, (row) => this.#rotten.has(row) ? { ...row } : row);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const before = new Map<Key, Row | undefined>();
    const delayMs = this.#drawn(this.#options.commitDelayMs);
    const cancelEarly = this.#showEarly(own, before, delayMs);
    const cancelEnd = this.#options.clock.after(delayMs, () => {
      this.#under = null;
      if (this.#failed !== null) {
        undo(this.#rows, before);
        this.#doubtful = own;
        return reject(failure(this.#failed));
      }
      this.#rows.apply(own);
      this.commits++;
      resolve();
    });
    const cancel = () => {
      cancelEarly();
      cancelEnd();
    };
    this.#under = { commit: own, cancel, before };
    return promise;
  }

  close(): Promise<void> {
    if (this.#under !== null) return Promise.reject(new Error("closed while a commit is under way"));
    this.#dead = true;
    return Promise.resolve();
  }

  /** D2: some rows show at a drawn time before the end. */
  #showEarly(commit: DiskCommit, before: Map<Key, Row | undefined>, delayMs: number): () => void {
    const { clock, random } = this.#options;
    if (commit.rows.length === 0 || random() >= (this.#options.earlyChance ?? 0.25)) return () => {};
    const rows = commit.rows.slice(0, 1 + Math.floor(random() * commit.rows.length));
    return clock.after(random() * delayMs, () => {
      for (const row of rows) {
        if (!before.has(row.key)) before.set(row.key, this.#rows.get(row.key));
        this.#rows.put(row);
      }
    });
  }

  /** @throws DamagedRows (D4) */
  #whole<Found extends Row | undefined>(found: readonly Found[]): Found[] {
    const damaged = found.flatMap((row) => row !== undefined && this.#rotten.has(row) ? [row.key] : []);
    if (damaged.length > 0) throw new DamagedRows(damaged);
    return [...found];
  }

  async #read<T>(look: () => T): Promise<T> {
    const { random, readDelayMs } = this.#options;
    if (readDelayMs !== undefined) await this.#pause(this.#drawn(readDelayMs));
    await turns(random);
    if (this.#dead) return await never<T>();
    const seen = look();
    await turns(random);
    return this.#dead ? await never<T>() : seen;
  }

  #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#options.clock.after(ms, resolve);
    return promise;
  }

  #drawn([least, greatest]: readonly [number, number]): number {
    return (least + this.#options.random() * (greatest - least)) * this.#slowness;
  }

  #kill(): Under | null {
    const under = this.#under;
    under?.cancel();
    this.#under = null;
    this.#dead = true;
    return under;
  }
}

const failure = (reason: string) => new StoreUnavailable("disk_failed", `cannot commit: ${reason}`);
const never = <T>(): Promise<T> => new Promise<T>(() => {});

async function turns(random: () => number): Promise<void> {
  for (let left = Math.floor(random() * (READ_TURNS_MAX + 1)); left > 0; left--) await null;
}

/** The caller may reuse its arrays once the call returned; its rows are values. */
const copy = (commit: DiskCommit, put: (row: Row) => Row): DiskCommit => ({
  rows: commit.rows.map(put),
  drop: [...commit.drop],
  records: new Map(commit.records),
});

/** Takes early rows back; all out first, so that no restored row meets a position still taken (M1). */
function undo(rows: MemoryRows, before: ReadonlyMap<Key, Row | undefined>): void {
  for (const key of before.keys()) rows.drop(key);
  for (const row of before.values()) if (row !== undefined) rows.put(row);
}
