/**
 * The collector, which makes room: it evicts ranges that nobody used lately, and collects tombstones and expired rows.
 *
 * L1  Never evicted: system ranges, ranges that a child covers or fetches, that are being fetched here or that a reader
 *     waits for, rows pending to the parent (PROTOCOL I3, I7).
 * L2  Collected: tombstones (and rows expired for longer than the horizon) at or below the watermark, that every child
 *     was fed past, and that are not pending to the parent (I9). A feed may be lost on its way: a child that comes back
 *     with a cursor below one that was collected starts over (downlinks.ts).
 * L4  A pending row outside coverage, whoever wrote it, leaves the disk once the root has it (I7). The list of such
 *     rows (core.ts, `uncovered`) has the newest place of each, and the clock with which it goes (E8).
 * L3  Rows that are only kept to be compared (stale.ts) go before anything that is of use.
 */
import type { Core } from "../core/core.ts";
import type { Downlinks } from "./downlinks.ts";
import type { Key } from "../model/key.ts";
import { EVICT_AGAIN_MS_PER_RANGE, EVICT_TO_SHARE, JOURNAL_BYTES } from "../model/limits.ts";
import { overlap, type Range, WHOLE } from "../model/range.ts";
import { type Position, type Row, rowBytes } from "../model/row.ts";
import { SYSTEM_RANGE } from "../members/topology.ts";
import type { Uplink } from "./uplink.ts";

/** Number of rows of the journal that a collection looks at, where it sweeps. */
const SWEEP_ROWS = 1_000;
/** Number of rows looked at in one go, so that a collection never holds the lock for long. */
const LOOK_ROWS = 256;

export class Collector {
  readonly #core: Core;
  readonly #uplink: Uplink | null;
  readonly #downlinks: Downlinks;
  /** Position up to which the journal was swept, once, for tombstones that an earlier run of this process left. */
  #sweptUpTo: Position = 0;
  #sweepEnd: Position = 0;
  /** Time before which nothing is evicted again: every range was looked at, and too little could go. */
  #evictAgainMs = -Infinity;

  constructor(core: Core, uplink: Uplink | null, downlinks: Downlinks) {
    this.#core = core;
    this.#uplink = uplink;
    this.#downlinks = downlinks;
  }

  /** Begins a sweep for tombstones that were left up to a position. */
  sweepTo(end: Position): void {
    this.#sweepEnd = end;
  }

  // ── Eviction ──

  /** Evicts until the site is within its capacity; only between commits. */
  async evictToCapacity(): Promise<void> {
    const core = this.#core;
    let bytes = await core.ports.storage.bytes();
    core.counters["storage_bytes"] = bytes;
    const nowMs = core.steady.nowMs();
    if (core.isRoot || bytes <= core.capacityBytes || nowMs < this.#evictAgainMs) return;
    const goal = core.capacityBytes * EVICT_TO_SHARE, ranges = core.coverage.leastRecentlyUsed(WHOLE);
    for (const range of core.stale.within(WHOLE)) { // L3
      if (bytes <= goal) return;
      if (!this.#uplink?.fetches(range)) bytes -= await this.#evictStale(range);
    }
    for (const range of ranges) {
      if (bytes <= goal) return;
      if (this.#isEvictable(range)) bytes -= await this.#evict(range);
    }
    this.#evictAgainMs = nowMs + EVICT_AGAIN_MS_PER_RANGE * ranges.length;
  }

  /** Evicts whatever may be in a range. */
  async evict(range: Range): Promise<void> {
    if (this.#core.isRoot) return;
    for (const stale of this.#core.stale.within(range)) await this.#evictStale(stale);
    for (const covered of this.#core.coverage.leastRecentlyUsed(range)) {
      if (this.#isEvictable(covered)) await this.#evict(covered);
    }
  }

  #isEvictable(range: Range): boolean {
    // L1
    return !overlap(range, SYSTEM_RANGE) && !this.#downlinks.uses(range) && !this.#uplink?.fetches(range) &&
      !this.#core.watchers.touches(range) && !this.#core.readers.touches(range);
  }

  /** Evicts a range; returns the bytes that went. */
  #evict(range: Range): Promise<number> {
    const core = this.#core;
    return core.rows.lock.run(async () => {
      const { seen } = await core.rows.list(range, 0, false);
      // A child may have asked for the range meanwhile.
      if (!this.#isEvictable(range)) return 0;
      core.coverage.remove(range);
      if (this.#uplink?.connected) core.send(core.config.parent ?? "", { kind: "drop", range });
      let bytes = 0;
      for (const row of seen) {
        if (core.pending.get(row.key) !== undefined) { // L1
          core.leavesLater(row);
          continue;
        }
        bytes += row.key.length + (row.value?.length ?? 0);
        this.#drop(row);
      }
      core.uncovered.sort((a, b) => a.position - b.position);
      core.count("evicted");
      core.wake();
      return bytes;
    });
  }

  /** Drops the stale rows of a range; returns the bytes that went. */
  #evictStale(range: Range): Promise<number> {
    const core = this.#core;
    return core.rows.lock.run(async () => {
      const { seen } = await core.rows.list(range, 0, false);
      const stale = seen.filter((row) => core.isStale(row));
      for (const row of stale) core.rows.drop(row);
      core.stale.remove(range);
      core.count("stale_evicted", stale.length);
      core.wake();
      return stale.reduce((bytes, row) => bytes + rowBytes(row), 0);
    });
  }

  #drop(row: Pick<Row, "key" | "clock">): void {
    this.#core.rows.drop(row);
    this.#core.pending.remove(row.key);
  }

  // ── Collection ──

  /** Drops rows that stand outside coverage, once the root has them: an inner site may lose its disk (I7). */
  async dropUncovered(): Promise<void> {
    const core = this.#core;
    const included = core.reach[0]?.top ?? 0;
    const end = core.uncovered.findIndex((entry) => entry.position > included);
    const settled = core.uncovered.splice(0, end < 0 ? core.uncovered.length : end);
    if (settled.length === 0) return;
    await core.rows.lock.run(() => {
      for (const entry of settled) {
        if (!core.coverage.covers(entry.key) && core.pending.get(entry.key) === undefined) this.#drop(entry);
      }
      return Promise.resolve();
    });
  }

  /** Collects what may go by now. */
  async collect(): Promise<void> {
    this.#core.pending.findLeast();
    const core = this.#core, nowMs = core.wall.nowMs();
    const fedUpTo = this.#downlinks.fedUpTo();
    const later: typeof core.mortal = [];
    const due = core.mortal.splice(0).filter((entry) => {
      if (entry.position <= fedUpTo && core.isCollectable(entry)) return true;
      later.push(entry);
      return false;
    });
    const keys = due.map((entry) => entry.key);
    if (this.#sweptUpTo < this.#sweepEnd) {
      const page = await core.ports.storage.journal(
        this.#sweptUpTo,
        this.#sweepEnd,
        SWEEP_ROWS,
        JOURNAL_BYTES,
      );
      this.#sweptUpTo = page.at(-1)?.position ?? this.#sweepEnd;
      for (const row of page) if (row.value === null || row.expiresAtMs !== 0) keys.push(row.key);
    }
    const all = [...new Set(keys)];
    for (let at = 0; at < all.length; at += LOOK_ROWS) {
      const some = all.slice(at, at + LOOK_ROWS);
      await core.rows.lock.run(() => this.#collectKeys(some, fedUpTo, nowMs, later));
    }
    core.mortal.push(...later);
  }

  async #collectKeys(
    keys: readonly Key[],
    fedUpTo: Position,
    nowMs: number,
    later: Core["mortal"],
  ): Promise<void> {
    const core = this.#core;
    for (const row of await core.rows.lookup(keys)) {
      if (row === undefined || (row.value !== null && row.expiresAtMs === 0) || core.isStale(row)) continue;
      const expired = row.expiresAtMs !== 0 && row.expiresAtMs + core.horizonMs < nowMs;
      // L2
      const may = (row.value === null || expired) && row.position <= fedUpTo && core.isCollectable(row) &&
        !core.isPendingToParent(row);
      if (may && this.#noteFloor(row)) {
        this.#drop(row);
        core.collectedTo = Math.max(core.collectedTo, row.position);
        core.count("collected");
      } else later.push({ key: row.key, position: row.position, clock: row.clock });
    }
    core.wake();
  }

  /**
   * Raises the positions that the absence of a row stands for from now on (session.ts E2); false while the row is
   * pending somewhere.
   */
  #noteFloor(row: Row): boolean {
    const core = this.#core;
    const bounds = core.path.map((_, depth) => core.bound(depth, row.position, row.known));
    if (bounds.some((bound) => bound === null)) return false;
    core.collected = core.collected.map((floor, depth) => Math.max(floor, bounds[depth] ?? 0));
    return true;
  }
}
