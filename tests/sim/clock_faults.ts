/**
 * What goes wrong with clocks: all jump, since time passes or since machines are suspended; one wall clock leaps, by so
 * little that neighbours just refuse it or by years, for a moment or until the end of the run, with starts in between;
 * one leaps with its steady clock, which nobody can tell; one is set.
 */
import { CLOCK_AHEAD_MS_MAX } from "../../store/model/limits.ts";
import type { HistoryEvent } from "./history.ts";
import type { Draws } from "./random.ts";
import type { SimSite } from "./site.ts";
import type { World } from "./world.ts";

/** What they act upon. */
interface Surroundings {
  readonly world: World;
  readonly sites: readonly SimSite[];
  readonly record: (event: HistoryEvent) => void;
  /** A site crashes, and is started again after a while. */
  readonly crash: (site: SimSite, draws: Draws) => void;
}

export const CLOCK_FAULTS = ["nap", "suspend", "leap", "warp", "jump"] as const;
export type ClockFault = typeof CLOCK_FAULTS[number];

/** Longer than the horizon after which tombstones may go (store/model/limits.ts HORIZON_MS). */
const NAP_MS = 11 * 60_000;
/** Longer than between two collections (limits.ts COLLECTIONS_PER_HORIZON). */
const COLLECT_MS = 40_000;
const COLLECT_AFTER_MS: readonly [number, number] = [5, 300];
/** So many of those that are suspended have a steady clock that does not notice; the others' time has just passed. */
const UNNOTICED_CHANCE = 0.7;
/** Past what neighbours accept (store/model/limits.ts CLOCK_AHEAD_MS_MAX), and far past it. */
const LEAPS_MS = [62_000, 3_600_000, 86_400_000, 365 * 86_400_000];
const LEAP_FACTOR: readonly [number, number] = [1, 1.9];
/** Two that are wrong by the same are taken for right (store/model/wall.ts B3, B4). */
const LEAPS_APART_MS = 70_000;
const LEAP_FOR_MS: readonly [number, number] = [20, 3_000];
/** It stays wrong, and everything has to work all the same. */
const FOR_GOOD_CHANCE = 0.3;
/** Its site is started again meanwhile. */
const CRASH_CHANCE = 0.4;
/** Past what neighbours accept, and back within it in the liveness phase. */
const WARP_MS: readonly [number, number] = [60_500, 63_000];
const WARP_FOR_MS: readonly [number, number] = [20, 800];
/** An operator or a time server sets a clock that was off. */
const JUMP_MS: readonly [number, number] = [5, 1_000];
/** By jumps and drift clocks come to differ by so much, and they are asked to join again a second later. */
const UNSET_MS = 6_000;

/** Clocks of a run going wrong. */
export class ClockFaults {
  readonly #around: Surroundings;
  /** How wide leaps of this run were. */
  readonly #leaps: number[] = [];
  /** Sites whose both clocks leapt: they differ for good. */
  readonly #warped = new Set<SimSite>();
  /** Of all of them: one may add to what another has made its neighbours date. */
  #warpsMs = 0;
  /** Until then something that a site said during a warp may be refused. */
  #datedUntilMs = 0;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  strike(name: ClockFault, site: SimSite, draws: Draws): void {
    const { world } = this.#around;
    switch (name) {
      case "nap":
        this.#nap(NAP_MS);
        // What is collected now follows from marks that pass after the first jump.
        return void world.after(draws.between(...COLLECT_AFTER_MS), () => this.#nap(COLLECT_MS));
      case "suspend":
        return this.#suspend(draws.pick([COLLECT_MS, NAP_MS, 8 * 3_600_000]), draws);
      case "leap":
        return this.#leap(site, draws);
      case "warp":
        return this.#warp(site, draws);
      case "jump": {
        const ms = Math.round(draws.between(...JUMP_MS)) * (draws.chance(0.5) ? 1 : -1);
        this.#say(`the clock of ${site.plan.id} is set by ${ms} ms`);
        return site.jump(ms);
      }
    }
  }

  /** Resolves when nothing that was said with a wrong clock is refused any more. */
  async settled(): Promise<void> {
    const { world } = this.#around;
    const leftMs = this.#datedUntilMs - world.nowMs;
    if (leftMs > 0) await world.sleep(leftMs);
  }

  #nap(ms: number): void {
    const { world, sites } = this.#around;
    this.#say("all clocks jump");
    world.sleptMs += ms;
    for (const each of sites) each.napped();
  }

  /** As a nap, but that the steady clocks of some, or of all, do not go on, and no timer comes due. */
  #suspend(ms: number, draws: Draws): void {
    const { world, sites } = this.#around;
    const isWhole = draws.chance(0.4);
    const unnoticed = sites.filter(() => draws.chance(UNNOTICED_CHANCE) || isWhole);
    this.#say(`all are suspended for ${ms} ms, unnoticed by ${unnoticed.map(({ plan }) => plan.id)}`);
    world.sleptMs += ms;
    for (const each of sites) if (unnoticed.includes(each)) each.suspended(ms);
  }

  #leap(site: SimSite, draws: Draws): void {
    const { world, crash } = this.#around;
    const sign = draws.chance(0.7) ? 1 : -1, forMs = draws.between(...LEAP_FOR_MS);
    const ms = Math.round(draws.pick(LEAPS_MS) * draws.between(...LEAP_FACTOR)) * sign;
    if (this.#leaps.some((other) => Math.abs(other - ms) < LEAPS_APART_MS)) return;
    this.#leaps.push(ms);
    this.#say(`the wall clock of ${site.plan.id} leaps ${ms} ms`);
    site.leap(ms);
    if (draws.chance(CRASH_CHANCE)) {
      world.after(draws.between(0, forMs), () => crash(site, draws.fork("crash")));
    }
    if (draws.chance(FOR_GOOD_CHANCE)) return;
    world.after(forMs, () => {
      this.#say(`the wall clock of ${site.plan.id} is right again`);
      site.leap(0);
    });
  }

  #warp(site: SimSite, draws: Draws): void {
    const { world, sites } = this.#around;
    if (this.#warped.has(site)) return;
    this.#warped.add(site);
    const ms = Math.round(draws.between(...WARP_MS));
    this.#say(`both clocks of ${site.plan.id} leap ${ms} ms`);
    site.warp(ms);
    const forMs = draws.between(...WARP_FOR_MS);
    this.#warpsMs += ms;
    const skews = sites.map(({ plan }) => plan.skewMs);
    const apartMs = Math.max(...skews) - Math.min(...skews) + UNSET_MS;
    this.#datedUntilMs = Math.max(
      this.#datedUntilMs,
      world.nowMs + forMs + this.#warpsMs - CLOCK_AHEAD_MS_MAX + apartMs,
    );
    world.after(forMs, () => {
      this.#say(`the wall clock of ${site.plan.id} is right again`);
      site.leap(0);
    });
  }

  #say(text: string): void {
    this.#around.record({ kind: "fault", atMs: this.#around.world.nowMs, text });
  }
}
