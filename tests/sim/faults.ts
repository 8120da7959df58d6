/**
 * What goes wrong in the safety phase: a schedule that the seed draws, of crashes, stops, lost, full and slow
 * disks, evictions and removals; links (link_faults.ts), clocks (clock_faults.ts) and crashes at a point of the
 * protocol (crash_points.ts) apart. All are over before the liveness phase.
 */
import type { SiteId } from "../../store/model/ports.ts";
import { ClockFaults } from "./clock_faults.ts";
import { CrashPoints, type Crossing, POINTS, WARD_POINTS, YIELDS } from "./crash_points.ts";
import { Departures } from "./departures.ts";
import type { HistoryEvent } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import { strikeLink } from "./link_faults.ts";
import { Moves } from "./moves.ts";
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
  /** Hears of every crossing. */
  readonly survey?: (crossing: Crossing) => void;
}

const DOWN_MS: readonly [number, number] = [2, 400];
/** Some rows, and in some runs most. */
const ROT_CHANCE = 0.3;
const GRACE_MS: readonly [number, number] = [0, 50];
/** So much older than the disk a copy of it is. */
const BACK_MS: readonly [number, number] = [5, 1_500];
const SLOW_DISK_MS: readonly [number, number] = [20, 600];
const SLOW_DISK_FACTORS: readonly [number, number] = [5, 50];

/** Small enough that most points are reached in most runs. */
const POINT_NTH_MAX = 25;
/** There are many kinds of messages, and few ways to yield otherwise. */
const YIELDS_SHARE = 0.4;

/** One fault of a run's schedule. */
interface Strike {
  readonly name: keyof FaultPlan;
  readonly draws: Draws;
}

/** Schedules the faults of a run. */
export class Faults {
  readonly #around: FaultSurroundings;
  readonly #draws: Draws;
  readonly #down = new Set<SimSite>();
  /** Planned stops that are under way: their sites are up until they have drained. */
  readonly #stopping = new Set<Promise<void>>();
  readonly #departures: Departures;
  readonly #moves: Moves;
  readonly #clocks: ClockFaults;
  readonly points: CrashPoints;
  /** The schedule: what each fault is called in `plan.only`. */
  readonly names: string[] = [];
  #over = false;

  constructor(around: FaultSurroundings, draws: Draws) {
    this.#around = around;
    this.#draws = draws;
    const { plan, world } = around;
    this.#departures = new Departures(around, draws.fork("departures"));
    this.#moves = new Moves(around, this.#departures, draws.fork("moves"));
    this.#clocks = new ClockFaults({ ...around, crash: (site, draws) => this.#crashInLeap(site, draws) });
    this.points = new CrashPoints((site, point) => this.crash(site, point), around.survey);
    for (const crash of plan.crashes) this.points.want(crash);
    for (const [name, expected] of Object.entries(plan.faults) as [keyof FaultPlan, number][]) {
      const counting = draws.fork(`how many ${name}`);
      for (let i = 0; i < expected; i++) {
        if (expected - i < 1 && !counting.chance(expected - i)) break;
        const called = `${name}/${i}`;
        this.names.push(called);
        if (plan.only?.faults?.includes(called) === false) continue;
        // Each has a stream of its own: one of them less leaves all others as they are.
        const strike = { name, draws: draws.fork(called) };
        if (name === "point") {
          const own = strike.draws;
          const points = own.chance(YIELDS_SHARE) ? YIELDS : this.#pointsOf(plan);
          this.points.want({ point: own.pick(points), nth: own.integer(1, POINT_NTH_MAX) });
          continue;
        }
        world.at(strike.draws.between(0, plan.safetyMs), () => {
          if (!this.#over) this.#strike(strike);
        });
      }
    }
  }

  /** A site's power is cut as it passes a point, and its disks are lost, where that is said. */
  crash(id: SiteId, point: string, isWiped = false): void {
    const site = this.#around.sites.find(({ plan }) => plan.id === id);
    if (site === undefined || this.#over || this.#down.has(site) || this.#departures.isAway(site)) return;
    this.#around.probes.count(`crash point: ${point}`);
    this.#say(`${id} crashes: ${point}`);
    if (isWiped) site.wipe();
    else site.crash();
    this.#away(site, this.#draws.fork(`after ${point} at ${this.#around.world.nowMs}`));
  }

  #pointsOf({ sites }: Plan): readonly string[] {
    return sites.some(({ owners }) => owners.f > 0) ? [...POINTS, ...WARD_POINTS] : POINTS;
  }

  /**
   * Ends all faults; sites that are down start again. So do those that would go down later: that are stopping, or whose
   * disk is full and have not met that yet.
   */
  async end(): Promise<void> {
    this.#over = true;
    this.points.end();
    this.#around.network.heal();
    for (const site of this.#around.sites) {
      site.slowDisk(1);
      if (site.isDiskFull) this.#givesUp(site);
    }
    for (const site of [...this.#down]) await this.#restart(site);
    await Promise.all(this.#stopping);
    await this.#clocks.settled();
    await this.#moves.ended();
    await this.#departures.ended();
  }

  /** Whether a site was taken off the tree and is not to come back. */
  isGone(site: SimSite): boolean {
    return this.#departures.isGone(site);
  }

  #say(text: string): void {
    this.#around.record({ kind: "fault", atMs: this.#around.world.nowMs, text });
  }

  #strike({ name, draws }: Strike): void {
    const { sites, probes } = this.#around;
    probes.count(`fault: ${name}`);
    const upSites = sites.filter((site) => !this.#down.has(site) && !this.#departures.isAway(site));
    const [site] = upSites.length > 0 ? [draws.pick(upSites)] : [];
    if (site === undefined) return;
    switch (name) {
      case "crash":
        this.#say(`${site.plan.id} crashes`);
        site.crash();
        return this.#away(site, draws);
      case "wipe":
      case "wipeInner": {
        const tier = name === "wipe" ? "edge" : "core";
        // A blank disk between two parents is let in by neither until an operator removes the site.
        const losers = upSites.filter((each) => each.plan.tier === tier && !each.isMoving);
        if (losers.length === 0) return;
        const loser = draws.pick(losers);
        this.#say(`${loser.plan.id} loses its disk`);
        loser.wipe();
        return this.#away(loser, draws);
      }
      case "stop":
        return this.#stops(site, draws);
      case "partition":
      case "stall":
      case "oneWay":
      case "slowLinks":
        return strikeLink(name, draws, { ...this.#around, isOver: () => this.#over });
      case "evict":
        return this.#evict(site, draws);
      case "nap":
      case "suspend":
      case "leap":
      case "warp":
      case "jump":
        return this.#clocks.strike(name, site, draws);
      case "rot":
        return this.#rot(site, draws);
      case "back":
        return this.#back(site, draws);
      case "slowDisk":
        return this.#slowDisk(site, draws);
      case "remove": {
        const leaves = upSites.filter(({ plan, process }) => plan.tier === "edge" && process !== null);
        if (leaves.length > 0) this.#departures.begin(draws.pick(leaves));
        return;
      }
      case "retire": {
        const leaves = upSites.filter(({ plan, process, isMoving }) =>
          plan.tier === "edge" && process?.ready === true && !isMoving
        );
        if (leaves.length > 0) this.#departures.retire(draws.pick(leaves), draws.between(...GRACE_MS));
        return;
      }
      case "move":
        return this.#moves.move();
      case "adopt":
        return this.#moves.adopt();
      case "diskFull":
        this.#say(`the disk of ${site.plan.id} is full`);
        return site.fillDisk(() => {
          if (this.#givesUp(site)) this.#away(site, draws);
        });
      case "point":
        return;
    }
  }

  #crashInLeap(site: SimSite, draws: Draws): void {
    if (this.#over || this.#down.has(site) || this.#departures.isAway(site)) return;
    this.#say(`${site.plan.id} crashes while its clock is wrong`);
    site.crash();
    this.#away(site, draws);
  }

  #slowDisk(site: SimSite, draws: Draws): void {
    const factor = draws.integer(...SLOW_DISK_FACTORS);
    this.#say(`the disk of ${site.plan.id} is ${factor} times slower`);
    site.slowDisk(factor);
    this.#around.world.after(draws.between(...SLOW_DISK_MS), () => site.slowDisk(1));
  }

  /** Rows that the root has, as the disk itself knows: no others may be mended, and those are for scenes (damaged_rows_test.ts). */
  #rot(site: SimSite, draws: Draws): void {
    if (site.parent === null) return;
    this.#say(`${site.plan.id} crashes, and its disk rots`);
    site.crash();
    const { rootReach, held } = site;
    const rows = held.filter(({ position }) => position <= rootReach);
    for (const { key } of rows) {
      if (draws.chance(ROT_CHANCE) && site.rot(key)) this.#around.probes.count("a row rotted");
    }
    this.#away(site, draws);
  }

  /** Somebody has copied a disk, and puts the copy in its place; where it is known for one, the site begins with a blank disk. */
  #back(site: SimSite, draws: Draws): void {
    const { world } = this.#around;
    if (site.plan.tier !== "edge" || site.process?.ready !== true) return;
    const copy = site.copyDisk();
    world.after(draws.between(...BACK_MS), () => {
      if (this.#over || this.#down.has(site) || this.#departures.isAway(site) || site.isMoving) return;
      this.#say(`the disk of ${site.plan.id} is an older copy`);
      site.putBack(copy, () => {
        if (this.#down.has(site) || this.#departures.isAway(site)) return;
        this.#say(`${site.plan.id} sets its disk aside`);
        this.#around.probes.count("older disk set aside");
        this.#down.add(site);
        if (this.#over) void this.#restart(site);
        else this.#away(site, draws);
      });
      this.#away(site, draws);
    });
  }

  #away(site: SimSite, draws: Draws): void {
    this.#down.add(site);
    this.#around.world.after(
      draws.between(...this.#around.plan.downMs ?? DOWN_MS),
      () => void this.#restart(site),
    );
  }

  async #restart(site: SimSite): Promise<void> {
    if (!this.#down.delete(site) || this.#departures.isAway(site)) return;
    this.#say(`${site.plan.id} starts`);
    await site.start();
  }

  /** Its disk is full; false: it is down already. */
  #givesUp(site: SimSite): boolean {
    if (this.#down.has(site) || this.#departures.isAway(site)) return false;
    this.#say(`${site.plan.id} gives up`);
    site.crash();
    this.#down.add(site);
    return true;
  }

  #stops(site: SimSite, draws: Draws): void {
    const stopping = this.#stop(site, draws);
    this.#stopping.add(stopping);
    void stopping.then(() => this.#stopping.delete(stopping));
  }

  async #stop(site: SimSite, draws: Draws): Promise<void> {
    const process = site.process;
    if (process === null) return;
    this.#say(`${site.plan.id} stops`);
    const closed = await site.stop(draws.between(...GRACE_MS));
    if (!closed) this.#say(`stuck: ${site.plan.id} did not close`);
    if (site.process !== null || this.#down.has(site) || this.#departures.isAway(site)) return;
    this.#down.add(site);
    if (this.#over) await this.#restart(site);
    else this.#away(site, draws);
  }

  #evict(site: SimSite, draws: Draws): void {
    const { keyspace } = this.#around;
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
