/**
 * Warming (SessionStore's CommandCache, section V.B, turned the other way round): what a session read and wrote
 * at one site is fetched at the next in the background, so that its later reads there find coverage.
 *
 * Life: reads and writes note ranges (the *footprint*) → the session arrives elsewhere → that site asks this one
 * for the footprint, a little later → it fetches, one range after the other, what it does not cover.
 *
 * F1  No request waits for any of this, and nothing of it is needed for a guarantee: a footprint may be forgotten,
 *     a question or an answer lost.
 * F2  It takes no room that is not free: a site near its capacity fetches nothing.
 */
import type { Core } from "../core/core.ts";
import { byteString, type Key } from "../model/key.ts";
import {
  EVICT_TO_SHARE,
  FOOTPRINT_RANGES_MAX,
  FOOTPRINT_SESSIONS_MAX,
  WARM_AFTER_MS,
  WARM_EVERY_MS,
} from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { Range } from "../model/range.ts";
import type { ReplicaNumber } from "../model/row.ts";
import type { Uplink } from "../tree/uplink.ts";

/** Ranges that one session touched here lately. */
export class Footprint {
  /** Ranges by their start, least recently touched first. */
  readonly #ranges = new Map<Key, Range>();
  /** Range that was noted last. */
  #last: Range | undefined;
  /** Time at which the session's footprint elsewhere was asked for last. */
  askedAtMs = -Infinity;

  note(range: Range): void {
    const last = this.#last;
    if (last !== undefined && last.start === range.start && last.end >= range.end) return;
    this.#last = range;
    const old = this.#ranges.get(range.start);
    if (old !== undefined) this.#ranges.delete(range.start);
    this.#ranges.set(range.start, old !== undefined && old.end > range.end ? old : range);
    if (this.#ranges.size <= FOOTPRINT_RANGES_MAX) return;
    const [eldest] = this.#ranges.keys();
    if (eldest !== undefined) this.#ranges.delete(eldest);
  }

  /** Lists the ranges, most recently touched first. */
  ranges(): Range[] {
    return [...this.#ranges.values()].reverse();
  }
}

export class Warming {
  readonly #core: Core;
  readonly #uplink: Uplink | null;
  /**
   * Footprints by session id, in two generations: a session that touches rows comes into the recent one, and once that
   * is full, the older one is forgotten. (Moving each to the end of one Map had it rebuilt all the time.)
   */
  #recent = new Map<string, Footprint>();
  #older = new Map<string, Footprint>();
  readonly #timers = new Set<() => void>();

  constructor(core: Core, uplink: Uplink | null) {
    this.#core = core;
    this.#uplink = uplink;
  }

  /** Returns the footprint of a session, to be added to. */
  footprint(session: Uint8Array): Footprint {
    const id = byteString(session);
    const recent = this.#recent.get(id);
    if (recent !== undefined) return recent;
    const footprint = this.#older.get(id) ?? new Footprint();
    if (this.#recent.size >= FOOTPRINT_SESSIONS_MAX / 2) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(id, footprint);
    return footprint;
  }

  /**
   * Takes the news that a session has come from another incarnation: its footprint there is asked for, after its own
   * reads.
   */
  arrived(session: Uint8Array, from: ReplicaNumber): void {
    const core = this.#core, source = core.topology.incarnation(from)?.site;
    if (this.#uplink === null || source === undefined || source === core.config.site) return;
    const footprint = this.footprint(session), nowMs = core.steady.nowMs();
    if (nowMs < footprint.askedAtMs + WARM_EVERY_MS) return;
    footprint.askedAtMs = nowMs;
    const cancel = core.ports.clock.after(WARM_AFTER_MS, () => {
      this.#timers.delete(cancel);
      core.send(source, { kind: "warm", session });
    });
    this.#timers.add(cancel);
  }

  /** Ends the questions. */
  close(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  /** Answers another site that asks for a session's footprint. */
  asked(from: SiteId, session: Uint8Array): void {
    const id = byteString(session);
    const ranges = (this.#recent.get(id) ?? this.#older.get(id))?.ranges() ?? [];
    if (ranges.length > 0) this.#core.send(from, { kind: "footprint", ranges });
  }

  /** Fetches ranges of a footprint that are not covered, unless that takes room that is needed (F2). */
  async told(ranges: readonly Range[]): Promise<void> {
    const core = this.#core;
    for (const range of ranges.slice(0, FOOTPRINT_RANGES_MAX)) {
      if (core.coverage.hasRange(range)) continue;
      const bytes = await core.ports.storage.bytes();
      if (core.closed || bytes > core.capacityBytes * EVICT_TO_SHARE) return;
      const isFetched = await this.#uplink?.fetch(range, 0, false).then(() => true, () => false); // F1
      if (!isFetched) return;
      core.count("warmed");
    }
  }
}
