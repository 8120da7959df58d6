/**
 * The timekeeper, which finds out whether this site's wall clock is right where its own steady clock and its neighbours
 * can't tell (wall.ts B4): all machines of the cluster were suspended, so that nobody believes what all wall clocks
 * say.
 *
 * K1  A child of the root whose wall clock is ahead of what it believes tells the root what the wall clock says, again
 *     and again. So does each child that refuses its parent, whose clock is too far ahead of its own.
 * K2  The root believes its own wall clock where most of the children that it is connected with say the same, within
 *     what none of them would refuse, and are nearer to that than to what the root believes: a child that tells its
 *     time for another reason (K3) confirms nothing. All other sites hear it from the root then, down the tree.
 * K3  A site tells its neighbours what its wall clock says, again and again, where that is behind what it believes, or
 *     both are behind the clocks of its rows: otherwise its neighbours hear only these clocks of it. Two sites whose
 *     wall clocks were ahead and are right again would confirm each other's belief for good.
 * K4  A root takes the time from its children, where it refuses some of them for their clocks, and most of those that
 *     are connected agree on a time that it would refuse: it was down, or suspended, and its wall clock can't tell it
 *     for how long. Where it believes its wall clock, that is a voice against them: a wall clock that was as far behind
 *     as the root was down looks right, and one child may be wrong. Any other site takes the time from its parent,
 *     where it does not believe its own (wall.ts B6). The root takes the least time that they say. From a child that
 *     says by itself what its wall clock does (K1, K3) it takes no more than that; from a child that it does not
 *     refuse, that has the time from here, just that.
 * K5  A session that the root refuses for its clock was told something by a site whose clock was as far ahead. That
 *     site, and all others whose clocks were, may have lost their disks since, and have the time from here; then the
 *     root would refuse that session for as long as it was down. So a child whose wall clock is ahead (K1) counts as
 *     one whose clock is that of the session.
 */
import type { Child } from "../core/child.ts";
import type { Core } from "../core/core.ts";
import { CLOCK_AHEAD_MS_MAX, CLOCK_DOUBT_MS, CLOCK_LEAP_MS_MAX, CLOCK_TELL_MS } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import { unixMs } from "../model/row.ts";
import type { Doubt } from "../model/wall.ts";

interface Neighbours {
  /** Sends to the parent, where there is one that is connected: it may refuse this site for its clock. */
  tell(ms: number): void;
  /** Sends to the children that are connected. */
  tellBelow(ms: number): void;
  children(): Iterable<Child>;
}

/** A time that was said, and when it was. */
interface Said {
  readonly ms: number;
  readonly steadyMs: number;
}

const COUNTS_FOR_MS = 3 * CLOCK_TELL_MS;

/** Judge of one site's wall clock, by what its neighbours say. */
export class Timekeeper {
  readonly #core: Core;
  readonly #neighbours: Neighbours;
  readonly #said = new Map<SiteId, Said>();
  /** Clocks of children that are refused for them, as of their last hello, by child (K4). */
  readonly #ahead = new Map<SiteId, Said>();
  /** The least of the times for which sessions were refused lately (K5). */
  #dated: Said | undefined;
  #toldMs = -Infinity;
  /** Time since when most of its children agree on another time, as it looks, though this root believes its own. */
  #outvotedSinceMs = Infinity;
  #isDoubted = false;

  constructor(core: Core, neighbours: Neighbours) {
    this.#core = core;
    this.#neighbours = neighbours;
  }

  /** Looks at the clock; called a few times a second. */
  look(): void {
    const { wall, isRoot, topology, config } = this.#core;
    wall.isAlone = isRoot && topology.childrenOf(config.site).length === 0;
    const { doubt } = wall;
    this.#note(doubt);
    if (isRoot && doubt !== null && this.#isConfirmed(doubt)) {
      wall.believe();
      return this.look();
    }
    if (isRoot) this.#takeTime(doubt);
    this.#tell(doubt);
  }

  /** Tells neighbours what the wall clock says (K1, K3). */
  #tell(doubt: Doubt | null): void {
    const { wall, clock, depth, steady } = this.#core;
    const isAhead = doubt !== null && doubt.aheadMs > 0;
    const isBehind = doubt !== null && !isAhead || unixMs(clock.last) - wall.nowMs() > CLOCK_LEAP_MS_MAX;
    if (!isBehind && !(isAhead && depth === 1) || steady.nowMs() - this.#toldMs < CLOCK_TELL_MS) return;
    this.#toldMs = steady.nowMs();
    this.#neighbours.tell(isAhead && depth !== 1 ? wall.nowMs() : wall.saysMs);
    if (isBehind) this.#neighbours.tellBelow(isAhead ? wall.nowMs() : wall.saysMs);
  }

  /**
   * Notes that the wall clock is doubted, or believed again. A site that starts has to hear its neighbours first, and a
   * leap of the blink of an eye is nothing to look at.
   */
  #note(doubt: Doubt | null): void {
    const isDoubted = doubt !== null && (this.#isDoubted || doubt.forMs >= CLOCK_DOUBT_MS);
    if (isDoubted === this.#isDoubted) return;
    this.#isDoubted = isDoubted;
    this.#core.count(isDoubted ? "clock_doubted" : "clock_believed");
    this.#core.ports.note(isDoubted ? "clock_doubted" : "clock_believed", { aheadMs: doubt?.aheadMs });
  }

  /** Takes what a child's wall clock says, which the child does not believe. */
  told(site: SiteId, ms: number): void {
    if (this.#core.isRoot) this.#said.set(site, { ms, steadyMs: this.#core.steady.nowMs() });
    this.#core.wall.hears(site, ms, true);
  }

  /** Takes the clock of a child that was refused for it. */
  refused(site: SiteId, ms: number): void {
    if (this.#core.isRoot) this.#ahead.set(site, { ms, steadyMs: this.#core.steady.nowMs() });
  }

  /** Takes the clock of a session that was refused for it. */
  refusedSession(ms: number): void {
    if (!this.#core.isRoot) return;
    const least = this.#now(this.#dated);
    if (least === null || ms < least) this.#dated = { ms, steadyMs: this.#core.steady.nowMs() };
  }

  /** Takes the time from the children (K4). */
  #takeTime(doubt: Doubt | null): void {
    const nowMs = this.#core.steady.nowMs(), time = this.#timeOfMost(doubt === null ? 1 : 0);
    if (time === null || doubt !== null) this.#outvotedSinceMs = Infinity;
    else this.#outvotedSinceMs = Math.min(this.#outvotedSinceMs, nowMs);
    const forMs = doubt?.forMs ?? nowMs - this.#outvotedSinceMs;
    if (time === null || forMs < CLOCK_DOUBT_MS) return;
    this.#core.count("clock_taken");
    this.#said.clear();
    this.#ahead.clear();
    this.#dated = undefined;
    this.#core.wall.takes(time);
  }

  /**
   * Returns the least time that most children agree on and that this root would refuse. @param against voices against
   * them.
   */
  #timeOfMost(against: number): number | null {
    const { wall } = this.#core;
    let voices = against;
    const times: { readonly ms: number; readonly isRefused: boolean }[] = [];
    for (const child of this.#neighbours.children()) {
      if (!child.connected) continue;
      voices++;
      const says = this.#now(this.#said.get(child.id));
      const dates = this.#now(this.#ahead.get(child.id)) ?? (says === null ? null : this.#now(this.#dated)); // K5
      const ms = Math.min(dates ?? Infinity, says ?? Infinity);
      if (ms < Infinity && wall.isTooFar(ms)) times.push({ ms, isRefused: dates !== null });
    }
    times.sort((a, b) => a.ms - b.ms);
    for (const { ms: least } of times) {
      const agreeing = times.filter(({ ms }) => ms >= least && ms - least <= CLOCK_AHEAD_MS_MAX);
      if (2 * agreeing.length > voices && agreeing.some(({ isRefused }) => isRefused)) return least;
    }
    return null;
  }

  /** Returns the time that a neighbour would say now, if it said one lately. */
  #now(last: Said | undefined): number | null {
    const nowMs = this.#core.steady.nowMs();
    return last === undefined || nowMs - last.steadyMs > COUNTS_FOR_MS
      ? null
      : last.ms + nowMs - last.steadyMs;
  }

  /** Reports whether the root's doubted wall clock is confirmed by most of its children (K2, wall.ts B4). */
  #isConfirmed({ forMs }: Doubt): boolean {
    const { wall, steady } = this.#core;
    let connected = 0, agreeing = 0;
    for (const child of this.#neighbours.children()) {
      if (!child.connected) continue;
      connected++;
      // A word from before the doubt speaks of another time.
      const isSince = (this.#said.get(child.id)?.steadyMs ?? 0) >= steady.nowMs() - forMs;
      const theirsMs = isSince ? this.#now(this.#said.get(child.id)) : null;
      if (theirsMs === null || Math.abs(theirsMs - wall.saysMs) > CLOCK_AHEAD_MS_MAX) continue;
      if (wall.isNearer(theirsMs)) agreeing++;
    }
    return 2 * agreeing > connected;
  }
}
