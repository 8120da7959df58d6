/**
 * What a site believes of its machine's wall clock, which may leap: by hours for the blink of an eye where a time server
 * errs, by years at the start of a machine without a battery, and truly where a machine was suspended.
 *
 * A site's clock value never goes back, and what it has dated is refused by its neighbours for as long as it lies more
 * than CLOCK_AHEAD_MS_MAX in their future (clock_guard.ts). So a leap that is believed for a moment would part the site,
 * and all below it, for as long as it was wide. Therefore:
 *
 * B1  The wall clock is believed within CLOCK_LEAP_MS_MAX of where a steady clock says that it should be. That place is
 *     the wall clock's own of before; at a start, where the clock value on disk ends: what time has passed since then
 *     nobody here knows, but that some has. So a wall clock that is behind it by more than CLOCK_BEHIND_MS_MAX is not
 *     believed there: by so much and by all the time that the site was down it is wrong, which may be too much.
 * B2  Where it is elsewhere, the site goes on from what it believed last, at the pace of the steady clock. That is as
 *     good a clock as any: nothing stops, nothing is refused.
 * B3  Further ahead it is believed as far as another site's clock says the same: two that are wrong by the same leap are
 *     taken for right. A suspended machine believes its clock as soon as it hears a neighbour; one that is cut off goes
 *     on with a clock that is late, which harms nobody: versions order what follows from each other, not the time of day.
 * B4  So is it where all of a cluster's machines were suspended, and none that is believed says so: the root takes the
 *     word of most of its children for it (timekeeper.ts). An operator's word counts at once.
 * B5  A wall clock that is further back is believed where a neighbour's has agreed with it for HEARD_FOR_MS, and after
 *     CLOCK_DOUBT_MS where that one is not refused then, nor would refuse this site, and is nearer to this wall clock than
 *     to what is believed. Else it agrees with that; and what it dates, or others do, would be refused where it is the
 *     nearest of all. A site that has heard nobody stays where it is. The site's own clock value stays where it is.
 * B6  A site that starts with a wall clock that is behind what it had dated before takes the time from its parent: how
 *     long it was down nobody here knows. So does one without any time of its own, whatever its wall clock says since,
 *     and one that would refuse its parent, and has not believed its own wall clock for CLOCK_DOUBT_MS: it knows no better.
 *     A root takes it from most of its children (timekeeper.ts K4).
 * B7  A root without children has nobody to ask. It goes by a wall clock that has stayed where it is for CLOCK_STAYS_MS,
 *     further ahead or back: what expires does. What it dates does not, and goes on from what was believed: the first
 *     site that joins may know better, and would refuse what is dated ahead of it for as long as the leap was wide.
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

/** What a neighbour's clock says. */
interface Heard {
  /** How far it is ahead of this site's steady clock. */
  readonly offsetMs: number;
  /** When it said so last … */
  readonly steadyMs: number;
  /** … and since when it has. */
  readonly sinceMs: number;
  readonly isWord: boolean;
}

/** How far the wall clock is from what is believed, and for how long. */
export interface Doubt {
  /** Negative: it is behind. */
  readonly aheadMs: number;
  readonly forMs: number;
}

/** Another site's clock agrees with the wall clock within this, or what it said is so old that it says nothing. */
const HEARD_MS_MAX = 5_000;
/** Another site's clock counts when it has said the same, within this, … */
const HEARD_WITHIN_MS = 10_000;
/** … for so long: what was held up on its way, as where a process stood still, is followed by what is not. */
const HEARD_FOR_MS = 2_000;
/** What a site says by itself it says again each second, while what it dates says something else. */
const WORD_COUNTS_MS = 3 * CLOCK_TELL_MS;
/** Where the wall clock is set meanwhile, it has not stayed. */
const STAYS_WITHIN_MS = 1_000;

export class Wall {
  readonly #clock: Clock;
  /** What it was when it was looked at last, by the steady clock … */
  #steadyMs: number;
  /** … where the wall clock should have been … */
  #placeMs: number;
  /** … and what was believed. */
  #believedMs: number;
  /** By neighbour: what its clock says. */
  readonly #heard = new Map<string, Heard>();
  /** Since when the wall clock has been so far from the steady one, where it is not believed. */
  #odd: { readonly offsetMs: number; readonly sinceMs: number } | null = null;
  /** It goes on from a disk, and has not heard its parent since (B6). */
  #isResumed = false;
  /** The place is where the clock value on disk ended, and it is later than that by nobody knows how much (B1). */
  #isAtLeast = false;
  /** Where the wall clock of a site without any time of its own was at its start, and would be now (B6). */
  #firstMs = -Infinity;
  /** There is nobody who could know better (B7). */
  isAlone = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#steadyMs = clock.steadyMs();
    this.#placeMs = this.#believedMs = clock.nowMs();
  }

  /** A start: the clock value on disk ends here; where there is none, and others are to be asked, that is 0 (B1). */
  resume(endMs: number): void {
    this.#steadyMs = this.#clock.steadyMs();
    this.#placeMs = this.#believedMs = endMs;
    this.#isResumed = this.#isAtLeast = endMs > 0;
    if (endMs === 0) this.#firstMs = this.saysMs;
    this.#look();
  }

  /** What this site goes by, in whole milliseconds since 1970: what is believed, or the wall clock all the same (B7). */
  nowMs(): number {
    this.#look();
    return Math.floor(this.#isGoneBy ? this.saysMs : this.#believedMs);
  }

  /** What is believed, in whole milliseconds since 1970: by it a site dates what it writes. */
  datesMs(): number {
    this.#look();
    return Math.floor(this.#believedMs);
  }

  /** The machine's wall clock, believed or not. */
  get saysMs(): number {
    return this.#clock.nowMs();
  }

  /** null: it is believed, or gone by. */
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
   * Whether a time that another site has dated something by may be right: it is no further ahead than this site's clock
   * is, believed or not. Where it may, that clock is believed so far (B3).
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

  /** Whether a time is so far ahead that this site refuses who has dated something by it. */
  isTooFar(ms: number): boolean {
    this.#look();
    return ms > Math.max(this.#believedMs, this.saysMs, this.#firstMs) + CLOCK_AHEAD_MS_MAX;
  }

  /** True where a time is nearer to what the wall clock says than to what is believed. */
  isNearer(ms: number): boolean {
    return Math.abs(ms - this.saysMs) < Math.abs(ms - this.#believedMs);
  }

  /** The time is so, whatever the wall clock says (timekeeper.ts K4). */
  takes(ms: number): void {
    this.#look();
    if (ms <= this.#believedMs) return;
    this.#placeMs = this.#believedMs = ms;
    this.#isAtLeast = false;
  }

  /** The parent welcomes this site, and its clock says so (B6). */
  meets(ms: number): void {
    this.#look();
    const isBehind = this.saysMs < this.#placeMs - this.#behindMsMax;
    if (this.#isResumed && isBehind && ms > this.#believedMs) this.#placeMs = this.#believedMs = ms;
    if (this.#hasStayedFor(CLOCK_DOUBT_MS) && this.isTooFar(ms)) this.#placeMs = this.#believedMs = ms;
    if (ms <= this.#firstMs + CLOCK_AHEAD_MS_MAX && ms > this.#believedMs) {
      this.#placeMs = this.#believedMs = ms;
    }
    this.#isResumed = this.#isAtLeast = false;
    this.#firstMs = -Infinity;
  }

  /**
   * A neighbour's clock says so, or has when the message left (B5).
   *
   * @param isWord its wall clock's, by itself (timekeeper.ts K3): what it dates meanwhile may be further ahead.
   */
  hears(from: string, ms: number, isWord: boolean): void {
    this.#look();
    const steadyMs = this.#steadyMs, offsetMs = ms - steadyMs, before = this.#heard.get(from);
    if (!isWord && before?.isWord === true && steadyMs - before.steadyMs <= WORD_COUNTS_MS) return;
    const isSame = before !== undefined && Math.abs(before.offsetMs - offsetMs) <= HEARD_WITHIN_MS;
    const sinceMs = isSame ? before.sinceMs : steadyMs;
    this.#heard.set(from, { offsetMs, steadyMs, sinceMs, isWord });
  }

  /** Somebody vouches for the wall clock as it is now (B4). */
  believe(): void {
    this.#steadyMs = this.#clock.steadyMs();
    this.#believeAt(this.saysMs);
  }

  #believeAt(ms: number): void {
    this.#placeMs = this.#believedMs = ms;
    this.#odd = null;
    this.#isAtLeast = false;
  }

  /** B1 */
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

  /** B7 */
  get #isGoneBy(): boolean {
    return this.isAlone && this.#hasStayedFor(CLOCK_STAYS_MS);
  }

  #hasStayedFor(ms: number): boolean {
    return this.#odd !== null && this.#steadyMs - this.#odd.sinceMs >= ms;
  }

  /** B5 */
  #isBackRightly(saysMs: number): boolean {
    const hasStayed = this.#hasStayedFor(CLOCK_DOUBT_MS);
    return this.#heard.values().some(({ offsetMs, steadyMs, sinceMs }) => {
      // One message may have been long on its way.
      if (steadyMs - sinceMs < HEARD_FOR_MS) return false;
      const heardMs = offsetMs + this.#steadyMs, offMs = Math.abs(heardMs - saysMs);
      const isFresh = this.#steadyMs - steadyMs <= HEARD_MS_MAX;
      const mayBe = offMs <= CLOCK_AHEAD_MS_MAX && this.isNearer(heardMs);
      return isFresh && offMs <= CLOCK_LEAP_MS_MAX || hasStayed && mayBe;
    });
  }
}
