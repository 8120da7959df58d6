/** What goes wrong with clocks: all jump (machines are suspended together), one is off for a while, one is set. */
import { CLOCK_AHEAD_MS_MAX } from "../../store/limits.ts";
import type { HistoryEvent } from "./history.ts";
import type { Draws } from "./random.ts";
import type { SimSite } from "./site.ts";
import type { World } from "./world.ts";

/** What they act upon. */
interface Surroundings {
  readonly world: World;
  readonly sites: readonly SimSite[];
  readonly record: (event: HistoryEvent) => void;
}

export const CLOCK_FAULTS = ["nap", "leap", "jump"] as const;
export type ClockFault = typeof CLOCK_FAULTS[number];

/** Longer than the horizon after which tombstones may go (store/limits.ts HORIZON_MS). */
const NAP_MS = 11 * 60_000;
/** Longer than between two collections (limits.ts COLLECTIONS_PER_HORIZON). */
const COLLECT_MS = 40_000;
const COLLECT_AFTER_MS: readonly [number, number] = [5, 300];
/** Past what neighbours accept (store/limits.ts CLOCK_AHEAD_MS_MAX), and back within it in the liveness phase. */
const LEAP_MS: readonly [number, number] = [60_500, 63_000];
const LEAP_FOR_MS: readonly [number, number] = [20, 800];
/** An operator or a time server sets a clock that was off. */
const JUMP_MS: readonly [number, number] = [5, 1_000];
/** By jumps and drift clocks come to differ by so much, and they are asked to join again a second later. */
const UNSET_MS = 6_000;

/** Clocks of a run going wrong. */
export class ClockFaults {
  readonly #around: Surroundings;
  /** Until then something that a site said during a leap may be refused. */
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
      case "leap":
        return this.#leap(site, draws);
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

  #leap(site: SimSite, draws: Draws): void {
    const { world, sites } = this.#around;
    const ms = Math.round(draws.between(...LEAP_MS)) * (draws.chance(0.7) ? 1 : -1);
    this.#say(`the clock of ${site.plan.id} leaps ${ms} ms`);
    site.leap(ms);
    const forMs = draws.between(...LEAP_FOR_MS);
    const skews = sites.map(({ plan }) => plan.skewMs);
    const apartMs = Math.max(...skews) - Math.min(...skews) + UNSET_MS;
    this.#datedUntilMs = Math.max(
      this.#datedUntilMs,
      world.nowMs + forMs + Math.abs(ms) - CLOCK_AHEAD_MS_MAX + apartMs,
    );
    world.after(forMs, () => {
      this.#say(`the clock of ${site.plan.id} is right again`);
      site.leap(0);
    });
  }

  #say(text: string): void {
    this.#around.record({ kind: "fault", atMs: this.#around.world.nowMs, text });
  }
}
