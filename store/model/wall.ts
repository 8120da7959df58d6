/**
 * The belief of a site in its machine's wall clock, which may leap: by hours for the blink of an eye where a time
 * server errs, by years at the start of a machine without a battery, and truly where a machine was suspended.
 *
 * A site's clock value never goes back, and rows that it has dated are refused by its neighbours for as long as they
 * lie more than CLOCK_AHEAD_MS_MAX in their future (clock_guard.ts). So a leap that is believed for a moment would part
 * the site, and all below it, for as long as it was wide. Therefore:
 *
 * B1  The wall clock is believed within CLOCK_LEAP_MS_MAX of where a steady clock says that it should be. That place is
 *     the wall clock's own of before; at a start, where the clock value on disk ends: how much time has passed since
 *     then is not known here, but that some has. So a wall clock that is behind it by more than CLOCK_BEHIND_MS_MAX is
 *     not believed then: it is wrong by so much and by all the time that the site was down, which may be too much.
 * B2  Where the wall clock is elsewhere, the site goes on from the time that it believed last, at the pace of the
 *     steady clock. That is as good a clock as any: nothing stops, nothing is refused.
 * B3  A wall clock that is further ahead is believed as far as another site's clock says the same: two that are wrong
 *     by the same leap are taken for right. A suspended machine believes its clock as soon as it hears a neighbour; one
 *     that is cut off goes on with a clock that is late, which does no harm: versions order what follows from each
 *     other, not the time of day.
 * B4  It is believed as well where all of a cluster's machines were suspended, so that no believed clock says the same:
 *     the root then takes the word of most of its children (timekeeper.ts). An operator's word counts at once.
 * B5  A wall clock that is further back is believed where a neighbour's clock has agreed with it for HEARD_FOR_MS; and
 *     after CLOCK_DOUBT_MS where the neighbour is not refused then, nor would refuse this site, and its clock is nearer
 *     to this wall clock than to the time that is believed. Else the neighbour agrees with that time; and rows that it
 *     dates, or others do, would be refused where it is the nearest of all. A site that has heard no other stays where
 *     it is. The site's own clock value stays where it is.
 * B6  A site that starts with a wall clock that is behind what it had dated before takes the time from its parent: how
 *     long it was down is not known here. So does a site without any time of its own, whatever its wall clock says
 *     since, and one that would refuse its parent, and has not believed its own wall clock for CLOCK_DOUBT_MS: it knows
 *     no better. The welcome may have been held up, so that the time is past what it says: a wall clock that is behind
 *     that by more than CLOCK_BEHIND_MS_MAX is not confirmed by it. A root takes it from most of its children
 *     (timekeeper.ts K4).
 * B7  A root without children has no site to ask. It goes by a wall clock that has stayed where it is for
 *     CLOCK_STAYS_MS, further ahead or back: rows expire by it. Rows are not dated by it, but by the time that was
 *     believed before: the first site that joins may know better, and would refuse rows that are dated ahead of it for
 *     as long as the leap was wide.
 *
 * The place moves after a wall clock that is believed, at CLOCK_DRIFT_MAX at most: so leaps that are narrow enough to be
 * believed do not add up to a wide one.
 */
import {
  CLOCK_AHEAD_MS_MAX,
  CLOCK_BEHIND_MS_MAX,
  CLOCK_DOUBT_MS,
  CLOCK_DRIFT_MAX,
  CLOCK_LEAP_MS_MAX,
  CLOCK_STAYS_MS,
  CLOCK_TELL_MS,
} from "./limits.ts";
import type { Clock } from "./ports.ts";

/** Report of a neighbour's clock. */
interface Heard {
  /** Milliseconds by which the neighbour's clock is ahead of this site's steady clock. */
  readonly offsetMs: number;
  /** Steady time at which the neighbour said so last. */
  readonly steadyMs: number;
  /** Steady time since which it has said the same. */
  readonly sinceMs: number;
  readonly isWord: boolean;
}

/** Doubt of the wall clock: how far it is from what is believed, and for how long. */
export interface Doubt {
  /** Milliseconds by which the wall clock is ahead; negative: it is behind. */
  readonly aheadMs: number;
  readonly forMs: number;
}

/**
 * Age of what another site's clock said beyond which it says nothing: neither of now, nor, together with what the site
 * says next, of the time between the two.
 */
const HEARD_MS_MAX = 5_000;
/** Difference within which another site's clock has said the same (HEARD_FOR_MS). */
const HEARD_WITHIN_MS = 10_000;
/**
 * Time for which another site's clock has to have said the same, at least every HEARD_MS_MAX, before it counts: a
 * message that was held up, as where a process stood still, is followed by one that is not. Where the process stands
 * still again first, the next message may be held up for as long, and nothing was heard in between.
 */
const HEARD_FOR_MS = 2_000;
/**
 * Time for which a site's word about its wall clock counts; it repeats that each second, while the rows that it dates
 * say something else.
 */
const WORD_COUNTS_MS = 3 * CLOCK_TELL_MS;
/** Difference within which a wall clock has stayed where it is, and was not set. */
const STAYS_WITHIN_MS = 1_000;

export class Wall {
  readonly #clock: Clock;
  /** Steady time at which the clock was looked at last. */
  #steadyMs: number;
  /** Time that the wall clock should have shown then: its *place* (B1). */
  #placeMs: number;
  /** Time that was believed then. */
  #believedMs: number;
  /** Report of each neighbour's clock. */
  readonly #heard = new Map<string, Heard>();
  /** Offset of the wall clock from the steady one, where it is not believed, with the time since when. */
  #odd: { readonly offsetMs: number; readonly sinceMs: number } | null = null;
  /** True while the site goes on from a disk, and has not heard its parent since (B6). */
  #isResumed = false;
  /**
   * True while the place is where the clock value on disk ended (B1), or what the parent's welcome said (B6), and the
   * time is later than that by an unknown amount.
   */
  #isAtLeast = false;
  /** Time of the wall clock of a site without any time of its own, as it was at its start and would be now (B6). */
  #firstMs = -Infinity;
  /** True while there is no site that could know better (B7). */
  isAlone = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#steadyMs = clock.steadyMs();
    this.#placeMs = this.#believedMs = clock.nowMs();
  }

  /**
   * Goes on from a start: the clock value on disk ends at `endMs`; where there is none, and others are to be asked,
   * that is 0 (B1).
   */
  resume(endMs: number): void {
    this.#steadyMs = this.#clock.steadyMs();
    this.#placeMs = this.#believedMs = endMs;
    this.#isResumed = this.#isAtLeast = endMs > 0;
    if (endMs === 0) this.#firstMs = this.saysMs;
    this.#look();
  }

  /**
   * Returns the time that this site goes by, in whole milliseconds since 1970: the believed one, or the wall clock all
   * the same (B7).
   */
  nowMs(): number {
    this.#look();
    return Math.floor(this.#isGoneBy ? this.saysMs : this.#believedMs);
  }

  /** Returns the believed time, in whole milliseconds since 1970: by it a site dates the rows that it writes. */
  datesMs(): number {
    this.#look();
    return Math.floor(this.#believedMs);
  }

  /** Time of the machine's wall clock, believed or not. */
  get saysMs(): number {
    return this.#clock.nowMs();
  }

  /** Doubt of the wall clock; null: it is believed, or gone by. */
  get doubt(): Doubt | null {
    this.#look();
    if (this.#odd === null || this.#isGoneBy) return null;
    const { sinceMs } = this.#odd;
    return {
      aheadMs: Math.round(this.saysMs - this.#believedMs),
      forMs: Math.round(this.#steadyMs - sinceMs),
    };
  }

  /**
   * Reports whether a time that another site has dated a row by may be right: it is no further ahead than this site's
   * clock, believed or not. Where it may be right, this site's clock is believed so far (B3).
   */
  agrees(ms: number): boolean {
    if (this.isTooFar(ms)) return false;
    const saysMs = this.saysMs;
    if (this.#odd !== null && saysMs > this.#placeMs && ms > this.#placeMs) {
      this.#placeMs = Math.min(ms, saysMs);
      this.#believedMs = Math.max(this.#believedMs, this.#placeMs);
    }
    return true;
  }

  /** Reports whether a time is so far ahead that this site refuses the site that has dated a row by it. */
  isTooFar(ms: number): boolean {
    this.#look();
    return ms > Math.max(this.#believedMs, this.saysMs, this.#firstMs) + CLOCK_AHEAD_MS_MAX;
  }

  /** Reports whether a time is nearer to the wall clock than to the believed time. */
  isNearer(ms: number): boolean {
    return Math.abs(ms - this.saysMs) < Math.abs(ms - this.#believedMs);
  }

  /** Takes a time as right, whatever the wall clock says (timekeeper.ts K4). */
  takes(ms: number): void {
    this.#look();
    if (ms <= this.#believedMs) return;
    this.#placeMs = this.#believedMs = ms;
    this.#isAtLeast = false;
  }

  /** Takes the time of the parent's clock, as the parent welcomes this site (B6). */
  meets(ms: number): void {
    this.#look();
    const isBehind = this.saysMs < this.#placeMs - this.#behindMsMax;
    const isLate = this.#isResumed && isBehind || ms <= this.#firstMs + CLOCK_AHEAD_MS_MAX;
    const isTaken = isLate && ms > this.#believedMs ||
      this.#hasStayedFor(CLOCK_DOUBT_MS) && this.isTooFar(ms);
    if (isTaken) this.#placeMs = this.#believedMs = ms;
    this.#isResumed = false;
    this.#isAtLeast = isTaken; // B6
    this.#firstMs = -Infinity;
  }

  /**
   * Takes what a neighbour's clock says, or said when the message left (B5).
   *
   * @param isWord true where it is the word of the neighbour's wall clock itself (timekeeper.ts K3): rows that the
   *     neighbour dates meanwhile may be further ahead.
   */
  hears(from: string, ms: number, isWord: boolean): void {
    this.#look();
    const steadyMs = this.#steadyMs, offsetMs = ms - steadyMs, before = this.#heard.get(from);
    if (!isWord && before?.isWord === true && steadyMs - before.steadyMs <= WORD_COUNTS_MS) return;
    const isInTime = before !== undefined && steadyMs - before.steadyMs <= HEARD_MS_MAX; // B5
    const isSame = isInTime && Math.abs(before.offsetMs - offsetMs) <= HEARD_WITHIN_MS;
    const sinceMs = isSame ? before.sinceMs : steadyMs;
    this.#heard.set(from, { offsetMs, steadyMs, sinceMs, isWord });
  }

  /** Believes the wall clock as it is now, for which another site or an operator vouches (B4). */
  believe(): void {
    this.#steadyMs = this.#clock.steadyMs();
    this.#believeAt(this.saysMs);
  }

  #believeAt(ms: number): void {
    this.#placeMs = this.#believedMs = ms;
    this.#odd = null;
    this.#isAtLeast = false;
  }

  /** Milliseconds by which a believed wall clock may be behind (B1). */
  get #behindMsMax(): number {
    return this.#isAtLeast ? CLOCK_BEHIND_MS_MAX : CLOCK_LEAP_MS_MAX;
  }

  #look(): void {
    const saysMs = this.saysMs, steadyMs = this.#clock.steadyMs();
    const elapsedMs = Math.max(0, steadyMs - this.#steadyMs);
    this.#steadyMs += elapsedMs;
    this.#placeMs += elapsedMs;
    this.#firstMs += elapsedMs;
    const offMs = saysMs - this.#placeMs;
    if (offMs <= CLOCK_LEAP_MS_MAX && offMs >= -this.#behindMsMax) {
      const mostMs = elapsedMs * CLOCK_DRIFT_MAX;
      this.#placeMs += Math.max(-mostMs, Math.min(mostMs, offMs));
      this.#believedMs = saysMs;
      this.#odd = null;
      this.#isAtLeast = false;
      return;
    }
    this.#believedMs += elapsedMs; // B2
    const offsetMs = saysMs - this.#steadyMs;
    if (this.#odd === null || Math.abs(this.#odd.offsetMs - offsetMs) > STAYS_WITHIN_MS) {
      this.#odd = { offsetMs, sinceMs: this.#steadyMs };
    }
    if (offMs < 0 && this.#isBackRightly(saysMs)) this.#believeAt(saysMs);
  }

  /** True where the site goes by a wall clock that is not believed (B7). */
  get #isGoneBy(): boolean {
    return this.isAlone && this.#hasStayedFor(CLOCK_STAYS_MS);
  }

  #hasStayedFor(ms: number): boolean {
    return this.#odd !== null && this.#steadyMs - this.#odd.sinceMs >= ms;
  }

  /** Reports whether a wall clock that is further back is to be believed (B5). */
  #isBackRightly(saysMs: number): boolean {
    const hasStayed = this.#hasStayedFor(CLOCK_DOUBT_MS);
    return this.#heard.values().some(({ offsetMs, steadyMs, sinceMs }) => {
      // A single message may have been long on its way.
      if (steadyMs - sinceMs < HEARD_FOR_MS) return false;
      const heardMs = offsetMs + this.#steadyMs, offMs = Math.abs(heardMs - saysMs);
      const isFresh = this.#steadyMs - steadyMs <= HEARD_MS_MAX;
      const mayBe = offMs <= CLOCK_AHEAD_MS_MAX && this.isNearer(heardMs);
      return isFresh && offMs <= CLOCK_LEAP_MS_MAX || hasStayed && mayBe;
    });
  }
}
