/** What goes wrong in a run, and what operators do: drawn from the seed, or put somewhere by hand. */
import type { SiteId } from "../../../store/ports.ts";
import type { SimNetwork } from "../../sim/network.ts";
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";
import type { Deployed } from "./deployed.ts";
import type { WholePlan } from "./plan.ts";
import type { SimSession } from "./session.ts";
import type { Site } from "./site.ts";

/** What faults are done to. */
export interface FaultPorts {
  readonly world: World;
  readonly network: SimNetwork;
  readonly draws: Draws;
  readonly plan: WholePlan;
  readonly sites: ReadonlyMap<SiteId, Site>;
  readonly sessions: readonly SimSession[];
  readonly deployed: Deployed;
  readonly probe: (name: string) => void;
  readonly complain: (text: string) => void;
}

const MOVE_DRAIN_MS = 400;
/** In the safety phase an operator looks so often. */
const MENDS = 8;
/** A wall clock is set by so much, at most; a process stands still for so long. */
const SET_MS_MAX = 60_000, STANDS_MS = [300, 3_000, 20_000];
/** All processes of a site together: an answer that nobody heard may go after a minute (functions/homes, R3). */
const STOOD_MS_MAX = 40_000;
/** So long a version is on its way to a site, at most. */
const DEPLOY_MS = 400;

/** See the file's header. */
export class Faults {
  readonly #ports: FaultPorts;
  readonly #stoodMs = new Map<SiteId, number>();
  #isOver = false;

  constructor(ports: FaultPorts) {
    this.#ports = ports;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * How far a session's clock may be ahead of the right time, from a site whose clock was: what it sets is due as much
   * later (runtime/stateful/timers.ts, T2).
   */
  get aheadMsMax(): number {
    const { sets, stands } = this.#ports.plan;
    return sets * SET_MS_MAX + stands * Math.max(...STANDS_MS);
  }

  /** Nothing goes wrong any more, and all clocks are put right. */
  end(): void {
    this.#isOver = true;
    for (const site of this.#ports.sites.values()) site.setRight();
    this.#ports.network.heal();
    for (const site of this.#ports.sites.keys()) this.#ports.deployed.comes(site);
  }

  /** Draws what happens. */
  begin(): void {
    const { draws, plan, world, sessions } = this.#ports;
    const sites = [...this.#ports.sites.values()];
    const times = (count: number, what: () => void) => {
      for (let i = 0; i < count; i++) {
        world.after(draws.between(0, plan.safetyMs), () => this.#isOver || what());
      }
    };
    const downMs = () => draws.pick([0, 20, 400, 2_000]) * draws.between(0.5, 1.5);
    const device = () => draws.pick(sessions.flatMap(({ devices }) => devices));
    times(plan.crashes, () => this.crash(draws.pick(sites).id, false, downMs()));
    times(plan.wipes, () => this.crash(draws.pick(sites).id, true, downMs()));
    times(plan.stops, () => this.#stop(draws.pick(sites)));
    times(plan.partitions, () => this.#part(draws.pick([50, 500, 2_000])));
    times(plan.kills, () => this.#kill(draws.pick(sites)));
    times(plan.stands, () => this.#standStill(draws.pick(sites), draws.pick(STANDS_MS)));
    times(plan.sets, () => draws.pick(sites).set(draws.integer(-SET_MS_MAX, SET_MS_MAX)));
    times(plan.moves, () => this.move(draws.pick(sessions)));
    times(plan.roams, () => device().roam());
    times(plan.cuts, () => device().cut());
    times(plan.originLeaves, () => draws.pick(sessions).programs.at(-1)?.leave());
    times(MENDS, () => this.mend());
    times(plan.deploys, () => this.#deploy());
  }

  crash(id: SiteId, wipe: boolean, downMs: number): void {
    const site = this.#ports.sites.get(id);
    if (site === undefined || this.#isOver) return;
    site.crash(wipe);
    this.#ports.probe(wipe ? "fault: wipe" : "fault: crash");
    this.#ports.world.after(downMs, () => void site.start());
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

  #standStill(site: Site, ms: number): void {
    const stoodMs = (this.#stoodMs.get(site.id) ?? 0) + ms;
    if (stoodMs > STOOD_MS_MAX) return;
    this.#stoodMs.set(site.id, stoodMs);
    site.standStill(ms);
  }

  #stop(site: Site): void {
    this.#ports.probe("fault: stop");
    void site.stop();
  }

  #kill({ process }: Site): void {
    const { draws, probe } = this.#ports;
    if (process === null) return;
    probe("fault: kill");
    draws.pick([process.isolates, process.isolates, process.followers]).lose(draws.chance(0.5));
  }

  /** Two sides that don't hear each other; or some pairs, so that a third one hears both. */
  #part(forMs: number): void {
    const { draws, network, world, probe } = this.#ports;
    const isByPairs = draws.chance(0.5), ids = [...this.#ports.sites.keys()];
    const some = ids.filter(() => draws.chance(0.4));
    for (const a of ids) {
      for (const b of ids) {
        const isCut = isByPairs ? a < b && draws.chance(0.4) : some.includes(a) && !some.includes(b);
        if (isCut) network.partition(a, b, world.nowMs + forMs);
      }
    }
    probe("fault: partition");
  }
}
