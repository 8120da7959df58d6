/** What goes wrong in a run, and what operators do: drawn from the seed, or put somewhere by hand. */
import type { SiteId } from "../../store/model/ports.ts";
import type { Cluster } from "../sim/cluster.ts";
import type { Draws } from "../sim/random.ts";
import type { World } from "../sim/world.ts";
import type { Deployed } from "./deployed.ts";
import type { SitesPlan } from "./plan.ts";
import type { SimSession } from "./session.ts";
import type { Site } from "./site.ts";

/** What faults are done to. */
export interface FaultPorts {
  readonly world: World;
  readonly cluster: Cluster;
  readonly draws: Draws;
  readonly plan: SitesPlan;
  readonly sites: ReadonlyMap<SiteId, Site>;
  readonly sessions: readonly SimSession[];
  readonly deployed: Deployed;
  readonly probe: (name: string) => void;
  readonly complain: (text: string) => void;
}

const MOVE_DRAIN_MS = 400;
/** In the safety phase an operator looks so often. */
const MENDS = 8;
/** A process stands still for so long: it is suspected, or taken for dead, or neither. */
const STANDS_MS = [30, 300, 2_000];
/** Past what is kept of those attached and of answers, and past the horizon. */
const DOZES_MS = [70_000, 11 * 60_000];
/** So long the others go on without one that is suspended. */
const DOZE_MS = [200, 3_000] as const;
/** tests/sim/clock_faults.ts */
const WARP_MS_MAX = 63_000, JUMP_MS_MAX = 1_000;
/** So long a version is on its way to a site, at most. */
const DEPLOY_MS = 400;

/** See the file's header. */
export class Faults {
  readonly #ports: FaultPorts;
  #isOver = false;

  constructor(ports: FaultPorts) {
    this.#ports = ports;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * How far a session's clock may be ahead of the right time, from a site whose clock was: what it sets is due as much
   * later (functions/sessions/serve/timers.ts, T2).
   */
  get aheadMsMax(): number {
    const { faults: { warp, jump }, sites } = this.#ports.plan.store;
    const skewMs = Math.max(...sites.map(({ skewMs }) => skewMs));
    return (warp > 0 ? WARP_MS_MAX : 0) + jump * JUMP_MS_MAX + Math.max(0, skewMs);
  }

  /** Nothing goes wrong any more; what befalls sites, disks, links and clocks ends by itself (tests/sim/faults.ts). */
  end(): void {
    this.#isOver = true;
    for (const site of this.#ports.sites.keys()) this.#ports.deployed.comes(site);
  }

  /** Draws what happens. */
  begin(): void {
    const { draws, plan, world, sessions } = this.#ports;
    const sites = [...this.#ports.sites.values()];
    const times = (count: number, what: () => void) => {
      for (let i = 0; i < count; i++) {
        world.after(draws.between(0, plan.store.safetyMs), () => this.#isOver || what());
      }
    };
    const devices = () => sessions.flatMap(({ devices }) => devices);
    const device = () => devices().length === 0 ? null : draws.pick(devices());
    times(plan.kills, () => this.#kill(draws.pick(sites)));
    times(plan.stands, () => this.#standStill(draws.pick(sites), draws.pick(STANDS_MS)));
    times(plan.moves, () => this.move(draws.pick(sessions)));
    times(plan.roams, () => device()?.roam());
    times(plan.cuts, () => device()?.cut());
    times(plan.originLeaves, () => draws.pick(sessions).programs.at(-1)?.leave());
    times(MENDS, () => this.mend());
    times(plan.deploys, () => this.#deploy());
    times(plan.dozes ?? 0, () => this.#doze(draws.pick(sites)));
    times(plan.arbiters, () => this.#putArbiterBack());
  }

  /** A site dies as it passes a point. */
  crash(id: SiteId, isWiped: boolean, point: string): void {
    if (this.#isOver) return;
    this.#ports.probe(isWiped ? "fate: wipe" : "fate: crash");
    this.#ports.cluster.faults.crash(id, point, isWiped);
  }

  /** Moves a session from where it is open to somewhere else. */
  move({ name }: SimSession): void {
    const { sites, draws, probe, complain } = this.#ports;
    for (const site of sites.values()) {
      const host = site.process?.host;
      if (this.#isOver || host?.look(name)?.state !== "open") continue;
      const others = [...sites.keys()].filter((id) => id !== site.id);
      host.move(name, draws.pick(others), MOVE_DRAIN_MS).then(
        () => probe("moved"),
        (error) => {
          probe(`move: ${error.code}`);
          if (error.code === undefined) complain(`a move fails: ${error.stack}`);
        },
      );
    }
  }

  /** What an operator does about sessions that stand still. */
  mend(): void {
    for (const { name } of this.#ports.sessions) {
      for (const { process } of this.#ports.sites.values()) {
        if (process === null || process.host.look(name)?.state !== "parked") continue;
        this.#ports.probe("mended");
        process.host.resume(name).catch(() => {}); // it is looked at again
      }
    }
  }

  /** Sites have it one after the other; meanwhile a session may move between two of them. */
  #deploy(): void {
    const { deployed, draws, world, sites, probe } = this.#ports;
    const number = deployed.deploy();
    for (const site of sites.keys()) {
      world.after(draws.between(0, DEPLOY_MS), () => deployed.comes(site, number));
    }
    probe("deployed");
  }

  #standStill({ sim }: Site, ms: number): void {
    this.#ports.probe("fault: stand");
    sim.standStill(ms * this.#ports.draws.between(0.5, 1.5));
  }

  /**
   * A machine is suspended while the time of all others passes; they go on without it for a moment before it goes on. Its
   * wall clock is right then; its steady clock may not have noticed.
   */
  #doze({ id, sim }: Site): void {
    const { draws, world, sites, probe } = this.#ports;
    if (sim.process === null) return;
    probe("fault: doze");
    sim.standStill(draws.between(...DOZE_MS));
    const ms = draws.pick(DOZES_MS), isNoticed = draws.chance(0.3);
    world.after(draws.between(0, DOZE_MS[0]), () => {
      if (this.#isOver) return;
      world.sleptMs += ms;
      for (const each of sites.values()) {
        if (each.id === id && !isNoticed) sim.suspended(ms);
        else each.sim.napped();
      }
    });
  }

  /** The root's power is cut, and the arbiter's disk is blank, or as it was some time before: a copy that somebody had made. */
  #putArbiterBack(): void {
    const { draws, world, cluster, sites, plan, probe } = this.#ports;
    const root = sites.get(cluster.root), copy = root?.copyDisk("arbiter") ?? null;
    if (root === undefined || copy === null) return;
    const logs = draws.chance(0.5) ? root.copyDisk("homes") : null;
    const isLost = draws.chance(0.3);
    world.after(draws.between(0, plan.store.safetyMs / 2), () => {
      if (this.#isOver || root.sim.process === null) return;
      probe(isLost ? "fault: arbiter lost" : "fault: arbiter put back");
      cluster.faults.crash(root.id, "the arbiter's disk is put back", false);
      root.putDisk("arbiter", isLost ? null : copy);
      if (logs !== null) root.putDisk("homes", logs);
    });
  }

  #kill({ process }: Site): void {
    const { draws, probe } = this.#ports;
    if (process === null) return;
    probe("fault: kill");
    draws.pick([process.isolates, process.isolates, process.followers]).lose(draws.chance(0.5));
  }
}
