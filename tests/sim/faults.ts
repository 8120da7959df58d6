/**
 * What goes wrong in the safety phase: crashes, stops, lost disks, cut and stalled links, evictions, long naps.
 * All are over before the liveness phase.
 */
import { CLOCK_AHEAD_MS_MAX } from "../../store/limits.ts";
import { Departures } from "./departures.ts";
import type { HistoryEvent } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import type { SimNetwork } from "./network.ts";
import type { Probes } from "./probes.ts";
import type { Draws } from "./random.ts";
import type { SimSite } from "./site.ts";
import type { FaultPlan, Plan } from "./topology.ts";
import type { World } from "./world.ts";

/** What faults act upon. */
export interface FaultSurroundings {
  readonly world: World;
  readonly network: SimNetwork;
  readonly plan: Plan;
  readonly keyspace: Keyspace;
  readonly probes: Probes;
  readonly sites: readonly SimSite[];
  readonly record: (event: HistoryEvent) => void;
}

/** Longer than the horizon after which tombstones may go (store/limits.ts HORIZON_MS). */
const NAP_MS = 11 * 60_000;
/** Longer than between two collections (COLLECT_EVERY_MS). */
const COLLECT_MS = 40_000;
const COLLECT_AFTER_MS: readonly [number, number] = [5, 300];
const DOWN_MS: readonly [number, number] = [2, 400];
const CUT_MS: readonly [number, number] = [5, 800];
/** Past what neighbours accept (store/limits.ts CLOCK_AHEAD_MS_MAX), and back within it in the liveness phase. */
const LEAP_MS: readonly [number, number] = [60_500, 63_000];
/** Sites differ by so much without any fault, and are asked to join again a second later. */
const SKEWS_MS = 3_000;
const LEAP_FOR_MS: readonly [number, number] = [20, 800];
const GRACE_MS: readonly [number, number] = [0, 50];

/** Small enough that most points are reached in most runs. */
const POINT_NTH_MAX = 25;

/** What crashes may wait for. */
export const POINTS: readonly string[] = [
  "commit begins",
  "commit ends",
  ...["hello", "welcome", "push", "feed", "fetch", "fetched", "drop", "number", "ask", "carry"].flatMap((
    kind,
  ) => [
    `${kind} leaves`,
    `${kind} arrives`,
  ]),
];

/** Schedules the faults of a run. */
export class Faults {
  readonly #around: FaultSurroundings;
  readonly #draws: Draws;
  readonly #down = new Set<SimSite>();
  readonly #departures: Departures;
  /** How often a point is still to be passed before the site that passes it crashes. */
  readonly #points = new Map<string, number[]>();
  #over = false;
  /** Until then something that a site said during a leap may be refused. */
  #datedUntilMs = 0;

  constructor(around: FaultSurroundings, draws: Draws) {
    this.#around = around;
    this.#draws = draws;
    const { plan, world } = around;
    this.#departures = new Departures(around, draws.fork("departures"));
    for (const { point, nth } of plan.crashes) this.#await(point, nth);
    for (const [name, expected] of Object.entries(plan.faults) as [keyof FaultPlan, number][]) {
      for (let left = expected; left > 0; left--) {
        if (left < 1 && !draws.chance(left)) break;
        if (name === "point") {
          this.#await(draws.pick(POINTS), draws.integer(1, POINT_NTH_MAX));
          continue;
        }
        world.at(draws.between(0, plan.safetyMs), () => {
          if (!this.#over) this.#strike(name);
        });
      }
    }
  }

  #await(point: string, nth: number): void {
    this.#points.set(point, [...this.#points.get(point) ?? [], nth]);
  }

  /** Whether a crash waits for anything, so that it pays to say what is passed. */
  get hasPoints(): boolean {
    return !this.#over && this.#points.size > 0;
  }

  /** A site passes a point; where a crash was waiting for that, it comes before anything else does. */
  passed(site: SimSite, point: string): void {
    const waiting = this.#points.get(point);
    if (waiting === undefined || this.#over) return;
    const left = waiting.map((times) => times - 1);
    this.#points.set(point, left.filter((times) => times > 0));
    if (!left.includes(0)) return;
    this.#around.world.after(0, () => {
      if (this.#over || this.#down.has(site) || this.#departures.isAway(site)) return;
      this.#around.probes.count(`crash point: ${point}`);
      this.#say(`${site.plan.id} crashes: ${point}`);
      site.crash();
      this.#away(site);
    });
  }

  /** Ends all faults; sites that are down start again. */
  async end(): Promise<void> {
    this.#over = true;
    this.#around.network.heal();
    for (const site of [...this.#down]) await this.#restart(site);
    const { world } = this.#around;
    const leftMs = this.#datedUntilMs - world.nowMs;
    if (leftMs > 0) await new Promise<void>((resolve) => world.after(leftMs, resolve));
    await this.#departures.ended();
  }

  /** Whether a site was taken off the tree and is not to come back. */
  isGone(site: SimSite): boolean {
    return this.#departures.isGone(site);
  }

  #say(text: string): void {
    this.#around.record({ kind: "fault", atMs: this.#around.world.nowMs, text });
  }

  #strike(name: keyof FaultPlan): void {
    const { sites, probes } = this.#around;
    probes.count(`fault: ${name}`);
    const draws = this.#draws;
    const upSites = sites.filter((site) => !this.#down.has(site) && !this.#departures.isAway(site));
    const [site] = upSites.length > 0 ? [draws.pick(upSites)] : [];
    if (site === undefined) return;
    switch (name) {
      case "crash":
        this.#say(`${site.plan.id} crashes`);
        site.crash();
        return this.#away(site);
      case "wipe":
      case "wipeInner": {
        const tier = name === "wipe" ? "edge" : "core";
        const losers = upSites.filter((each) => each.plan.tier === tier);
        if (losers.length === 0) return;
        const loser = draws.pick(losers);
        this.#say(`${loser.plan.id} loses its disk`);
        loser.wipe();
        return this.#away(loser);
      }
      case "stop":
        return void this.#stop(site);
      case "partition":
      case "stall":
        return this.#link(name);
      case "evict":
        return this.#evict(site);
      case "nap":
        this.#nap(NAP_MS);
        // What is collected now follows from marks that pass after the first jump.
        return void this.#around.world.after(draws.between(...COLLECT_AFTER_MS), () => this.#nap(COLLECT_MS));
      case "remove": {
        const leaves = upSites.filter(({ plan, process }) => plan.tier === "edge" && process !== null);
        if (leaves.length > 0) this.#departures.begin(draws.pick(leaves));
        return;
      }
      case "diskFull":
        this.#say(`the disk of ${site.plan.id} is full`);
        return site.fillDisk(() => {
          if (this.#down.has(site) || this.#departures.isAway(site)) return;
          this.#say(`${site.plan.id} gives up`);
          site.crash();
          this.#down.add(site);
          if (this.#over) void this.#restart(site);
          else this.#away(site);
        });
      case "leap":
        return this.#leap(site);
      case "point":
        return;
    }
  }

  #nap(ms: number): void {
    const { world, sites } = this.#around;
    this.#say("all clocks jump");
    world.sleptMs += ms;
    for (const each of sites) each.napped();
  }

  #leap(site: SimSite): void {
    const draws = this.#draws;
    const ms = Math.round(draws.between(...LEAP_MS)) * (draws.chance(0.7) ? 1 : -1);
    this.#say(`the clock of ${site.plan.id} leaps ${ms} ms`);
    site.leap(ms);
    const forMs = draws.between(...LEAP_FOR_MS);
    this.#datedUntilMs = Math.max(
      this.#datedUntilMs,
      this.#around.world.nowMs + forMs + Math.abs(ms) - CLOCK_AHEAD_MS_MAX + SKEWS_MS,
    );
    this.#around.world.after(forMs, () => {
      this.#say(`the clock of ${site.plan.id} is right again`);
      site.leap(0);
    });
  }

  #away(site: SimSite): void {
    this.#down.add(site);
    this.#around.world.after(this.#draws.between(...DOWN_MS), () => void this.#restart(site));
  }

  async #restart(site: SimSite): Promise<void> {
    if (!this.#down.delete(site)) return;
    this.#say(`${site.plan.id} starts`);
    await site.start();
  }

  async #stop(site: SimSite): Promise<void> {
    const process = site.process;
    if (process === null) return;
    this.#say(`${site.plan.id} stops`);
    const closed = await site.stop(this.#draws.between(...GRACE_MS));
    if (!closed) this.#say(`stuck: ${site.plan.id} did not close`);
    if (site.process !== null || this.#down.has(site) || this.#departures.isAway(site)) return;
    this.#down.add(site);
    if (this.#over) await this.#restart(site);
    else this.#away(site);
  }

  #link(name: "partition" | "stall"): void {
    const { plan, network, world } = this.#around;
    const draws = this.#draws;
    const from = draws.pick(plan.sites);
    const others = plan.sites.filter((other) => other !== from);
    const to = draws.chance(0.8) && from.parent !== null ? from.parent : draws.pick(others).id;
    const untilMs = world.nowMs + draws.between(...CUT_MS);
    this.#say(`${name} between ${from.id} and ${to} until ${untilMs.toFixed(1)}`);
    if (name === "partition") network.partition(from.id, to, untilMs);
    else network.stall(from.id, to, untilMs);
  }

  #evict(site: SimSite): void {
    const { keyspace } = this.#around;
    const draws = this.#draws;
    const process = site.process;
    if (process === null || !process.ready) return;
    const group = draws.pick(keyspace.groups);
    const key = keyspace.key(draws.integer(0, keyspace.size - 1));
    const point = { start: key, end: `${key}\x00` as typeof key };
    const range = draws.pick([undefined, group.range, point, point]);
    this.#say(`${site.plan.id} evicts`);
    void process.replica.evict(range).catch((error: unknown) => {
      if (process.alive) this.#say(`fatal: ${site.plan.id} cannot evict: ${error}`);
    });
  }
}
