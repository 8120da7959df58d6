/**
 * One run of whole sites: a tree of real replicas with homes, executors, standbys and gateways above them; clients of
 * rows who call stateful sessions, clients of stateful sessions with both kinds of host side, callers, programs behind
 * the sessions; and faults drawn from the seed.
 *
 * Stages: safety phase → healing: everybody has what is theirs, and nothing is under way, which is judged →
 * somebody asks each session once more → all is at the root, and looked at once more → the checkers → stable clocks go on.
 */
import { useOneForm } from "../../functions/values/value.ts";
import type { OpenReplica } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { openReplica } from "../../store/replica.ts";
import { checkHistory } from "../sim/checks.ts";
import { Cluster } from "../sim/cluster.ts";
import type { History } from "../sim/history.ts";
import type { Draws } from "../sim/random.ts";
import { HEAL_MS_MAX } from "../sim/simulation.ts";
import { checkStableClocks } from "../sim/stable_clocks.ts";
import type { SiteProcess as ReplicaProcess } from "../sim/site.ts";
import { type Acted, withActs } from "./acts.ts";
import { GatewayCalls } from "./calls.ts";
import { checkCalls, type Excused, type Violation } from "./checker.ts";
import { APP, Deployed } from "./deployed.ts";
import { Faults } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import { Mailbox } from "./mailbox.ts";
import { OriginProgram, Server } from "./outside.ts";
import { OwnRows } from "./own_rows.ts";
import { People } from "./people.ts";
import { drawSitesPlan, type SitesPlan } from "./plan.ts";
import { type Judged, type Lived, SimSession } from "./session.ts";
import { Site } from "./site.ts";
import type { Surroundings, Wrongs } from "./surroundings.ts";
import { Wire, type WireParts } from "./wire.ts";

// As isolates of stateful sessions do: V8's bytes differ from run to run.
useOneForm();

/** What happens at a point that is passed. */
export type Fate = "goes on" | "crashes" | "loses its disk" | "breaks";

export interface SitesOptions {
  readonly wrongs?: Wrongs;
  /** The store, where it is broken on purpose. */
  readonly open?: OpenReplica;
  readonly meddle?: WireParts["meddle"];
  readonly change?: (plan: SitesPlan) => SitesPlan;
  /** Sees every point that a process passes, and each frame of a channel (`site` null), and says what happens there. */
  readonly passes?: (site: SiteId | null, point: string) => Fate;
  readonly logs?: (text: string) => void;
}

export interface SitesRun {
  readonly seed: number;
  readonly plan: SitesPlan;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
  readonly events: number;
  /** The names of all faults of sites, disks, links and clocks that were drawn, for `plan.store.only`. */
  readonly faults: readonly string[];
  /** All that was heard and answered, for who compares runs. */
  readonly seen: string;
}

const POLL_MS = 100, HEAL_MS = 120_000, QUIET_MS = 2_500;
const NOTICED_MS = 2_000;
/**
 * From one time that an operator looks to the next. What throws as the time is (program.ts, `balk`) has a period of 3: at
 * even times one whose handler takes three of them would find the same part of it each time.
 */
const MEND_MS = [300, 302] as const;
/** There are fewer of these in a run than make one. */
const TAP = 1e-9;

/** Runs a seed. */
export function simulateSites(seed: number, options: SitesOptions = {}): Promise<SitesRun> {
  const plan = (options.change ?? ((same) => same))(drawSitesPlan(seed, options.change === undefined));
  return new Simulation(seed, plan, options).run();
}

class Simulation {
  readonly #seed: number;
  readonly #plan: SitesPlan;
  readonly #options: SitesOptions;
  readonly #cluster: Cluster;
  readonly #draws: Draws;
  readonly #sites = new Map<SiteId, Site>();
  readonly #sessions: SimSession[] = [];
  readonly #faults: Faults;
  readonly #people: People;
  readonly #rows: OwnRows;
  readonly #server = new Server();
  readonly #mailbox = new Mailbox();
  readonly #deployed = new Deployed();
  readonly #found: Violation[] = [];
  readonly #probes: Record<string, number> = {};
  readonly #wires = new Map<SiteId, Wire[]>();
  #taps = 0;

  constructor(seed: number, plan: SitesPlan, options: SitesOptions) {
    this.#seed = seed;
    this.#plan = plan;
    this.#options = options;
    this.#rows = new OwnRows(plan.store.sites.find(({ parent }) => parent === null)?.id ?? "");
    for (const [i, className] of plan.classes.entries()) {
      this.#sessions.push(new SimSession({ app: APP, class: className, id: `x${i}` }));
    }
    let around: Surroundings | undefined;
    const cluster = this.#cluster = new Cluster(plan.store, {
      ...{ name: `sites run ${seed}`, open: options.open ?? openReplica },
      passed: (site, point) => this.#passed(site, point),
      above: (sim, cluster) => {
        around ??= this.#surroundings(cluster);
        const site = new Site(sim, around, cluster.draws.fork(`above ${sim.plan.id}`));
        this.#sites.set(sim.plan.id, site);
        return site;
      },
      disks: this.#rows,
      calls: {
        chance: plan.callChance,
        draw: (draws) => this.#people.call(draws),
        of: (process) => (session) => this.#callsOf(process, session),
      },
    });
    const { world, network } = cluster;
    const draws = this.#draws = cluster.draws;
    const probe = (name: string) => this.#probe(name);
    const common = { cluster, plan, sessions: this.#sessions, probe };
    this.#faults = new Faults({
      ...{ ...common, world, network, draws: draws.fork("session faults"), sites: this.#sites },
      ...{ deployed: this.#deployed, complain: (text) => this.#say("fault", text) },
    });
    this.#people = new People({
      ...{ ...common, draws, sites: [...this.#sites.values()], isOver: () => this.#faults.isOver },
      wire: (gateway, draws) => this.#wire(gateway, draws),
    });
  }

  #surroundings({ world, network, root, draws }: Cluster): Surroundings {
    const { wrongs = {}, logs } = this.#options;
    const origins = draws.fork("origins");
    return {
      ...{ plan: this.#plan, root, sites: this.#sites, world, network, wrongs },
      ...{ server: this.#server, mailbox: this.#mailbox, deployed: this.#deployed, numbers: { next: 0 } },
      ...(logs === undefined ? {} : { logs }),
      tap: {
        opened: (of, epoch, at, pieces, by) => this.#opened(of, epoch, at, pieces, by),
        committed: ({ id }, epoch, commit) => this.#session(id).log.committed(epoch, commit, this.#order()),
      },
      program: (at, listener) => {
        const session = this.#session(at.slice(at.indexOf("/") + 1)), { programs, name: { id } } = session;
        const program = new OriginProgram(`${id}!o${programs.length}`, at, listener);
        programs.push(program);
        this.#people.converse(program, session, origins);
        return program;
      },
      died: (site) => this.#died(site),
      complain: (text) => this.#say("fault", text),
      probe: (name) => this.#probe(name),
      originBreaks: () =>
        this.#breaks("origin frame") || (!this.#faults.isOver && origins.chance(this.#plan.originBreaks)),
    };
  }

  /** Of a request of a client that runs in a process. */
  #callsOf(
    { replica: { site } }: ReplicaProcess,
    session: ConstructorParameters<typeof GatewayCalls>[0]["session"],
  ) {
    const process = this.#sites.get(site)?.process ?? null;
    if (process === null) throw new Error(`${site} serves, and has nothing above its replica`);
    return new GatewayCalls({
      ...{ session, process, deployed: this.#deployed },
      answered: ({ id, once }, answer) => void this.#people.answered(this.#session(id), once, answer),
    });
  }

  /** Where something stands in the history: after all that was noted so far, and before what is next. */
  #order(): number {
    return this.#cluster.events.length + ++this.#taps * TAP;
  }

  #session(id: string): SimSession {
    const session = this.#sessions.find(({ name }) => name.id === id);
    if (session === undefined) throw new Error(`no session is called ${id}`);
    return session;
  }

  #probe(name: string, by = 1): void {
    this.#probes[name] = (this.#probes[name] ?? 0) + by;
  }

  #say(checker: string, message: string): void {
    this.#found.push({ checker, message });
  }

  // ── Points ──

  #passed(site: SiteId, point: string): void {
    const fate = this.#options.passes?.(site, point) ?? "goes on";
    if (fate !== "goes on") this.#faults.crash(site, fate === "loses its disk", point);
  }

  #breaks(point: string): boolean {
    return this.#options.passes?.(null, point) === "breaks" && !this.#faults.isOver;
  }

  // ── The run ──

  async run(): Promise<SitesRun> {
    const cluster = this.#cluster, { world, probes } = cluster;
    cluster.schedule();
    this.#people.begin();
    this.#faults.begin();
    await world.run(this.#plan.store.safetyMs);
    await this.#heal();
    await this.#peace();
    cluster.finish();
    const ledgers: Ledger[] = [], acted: Acted[] = [], seen: unknown[] = [];
    for (const session of this.#sessions) {
      const { lives, told } = this.#judge(session);
      seen.push(told);
      for (const life of lives ?? []) {
        ledgers.push(life.ledger);
        acted.push(life);
      }
    }
    const excused = (what: string) => this.#probe(`excused ${what}`);
    this.#found.push(...checkCalls(ledgers, excused));
    const history = cluster.history(withActs(cluster.events, acted, cluster.keyspace));
    this.#found.push(...cluster.stuck(), ...checkHistory(history, excused));
    for (const site of this.#sites.values()) {
      site.count();
      for (const [name, count] of Object.entries(site.counters)) this.#probe(name, count);
    }
    for (const [name, count] of Object.entries(probes.all())) this.#probe(name, count);
    const { events } = world, found = [...this.#found], counted = { ...this.#probes };
    // The watermark waits for what sessions owe, which go on for as long as they like.
    found.push(...await checkStableClocks(cluster, { watermark: false }));
    return {
      ...{
        seed: this.#seed,
        plan: this.#plan,
        history,
        violations: found,
        probes: counted,
        events,
      },
      faults: cluster.faults.names,
      seen: JSON.stringify([seen, counted]),
    };
  }

  async #heal(): Promise<void> {
    const cluster = this.#cluster, { world } = cluster;
    this.#faults.end();
    let isHealed = false;
    void cluster.faults.end().then(() => isHealed = true);
    await cluster.peace("faults end", () => isHealed, HEAL_MS_MAX);
    const draws = this.#draws.fork("mends");
    const mend = () => {
      this.#faults.mend();
      world.after(draws.integer(...MEND_MS), mend);
    };
    mend();
    await this.#settled();
    // All of it whether or not anybody asks.
    for (const session of this.#sessions) {
      const { violations } = this.#judged(session);
      this.#found.push(...violations);
    }
    for (const session of this.#sessions) this.#people.last(session);
    await this.#settled();
    if (this.#people.open > 0) this.#say("WC8", `${this.#people.open} requests are not answered`);
  }

  /** All is at the root, and looked at once more by every client. */
  async #peace(): Promise<void> {
    const cluster = this.#cluster, { sites } = this.#plan.store;
    await cluster.peace("requests end", () => cluster.isIdle());
    await cluster.peace("pushes drain", () => cluster.isPushed());
    const draws = this.#draws.fork("looks");
    for (const client of cluster.clients) client.look(draws.pick(sites).id);
    await cluster.peace("last looks end", () => cluster.isIdle());
    await cluster.settle();
  }

  async #settled(): Promise<void> {
    const { world, clients } = this.#cluster;
    const untilMs = world.nowMs + HEAL_MS + this.#faults.aheadMsMax;
    let quietMs = world.nowMs, lookedMs = 0, before = "";
    while (world.nowMs < untilMs) {
      await world.run(world.nowMs + POLL_MS);
      const now = this.#sessions.map(({ standing }) => standing).join(";");
      const isIdle = this.#people.open === 0 && clients.every(({ busy }) => busy === 0);
      if (now !== before || !isIdle) quietMs = world.nowMs;
      before = now;
      // To run all logs takes a while: where somebody lacks something, it is looked for again later.
      if (world.nowMs - Math.max(quietMs, lookedMs) < QUIET_MS) continue;
      if (this.#isDone) return;
      lookedMs = world.nowMs;
    }
  }

  /** Everybody has what is theirs. A handler that is tried again, or an origin that is, may take some seconds. */
  get #isDone(): boolean {
    const isWhole = (session: SimSession) =>
      this.#judged(session).violations.every(({ checker }) => checker !== "WC8");
    return this.#sessions.every((session) => session.isSettled && isWhole(session));
  }

  #judged(session: SimSession, excused: Excused = () => {}): Judged {
    const kept = [...this.#sites.values()].map(({ homes }) => homes?.debugLog(session.name)?.last ?? 0);
    const outside = { server: this.#server, mailbox: this.#mailbox };
    return session.judge(this.#rows, outside, { kept: Math.max(...kept), excused });
  }

  #judge(session: SimSession): { readonly lives: readonly Lived[] | null; readonly told: unknown } {
    const excused = (what: string) => this.#probe(`excused ${what}`);
    const { violations, lives, parties } = this.#judged(session, excused);
    this.#found.push(...violations);
    const { log, answered } = session;
    this.#probe("entries", log.entries.length);
    this.#probe("openings", log.openings);
    this.#probe("begun anew", log.before.length);
    for (const { ledger } of lives ?? []) {
      this.#probe("called", ledger.called.length);
      this.#probe("undone", ledger.undone.size);
      this.#probe("posted", ledger.posted.length);
      if (ledger.mailed.length > 0) this.#probe("mailed", ledger.mailed.length);
      this.#probe("swapped", ledger.swapped.length);
      this.#probe("acts", ledger.acts.length);
    }
    for (const { heard } of parties) this.#probe("heard", heard.length);
    return { lives, told: [parties, [...answered]] };
  }

  #wire(gateway: Site, draws: Draws): Wire {
    const wire = new Wire({
      ...{ world: this.#cluster.world, draws, meddle: this.#options.meddle ?? ((frame) => frame) },
      plan: () => this.#faults.isOver ? { ...this.#plan, breaks: 0, garbles: 0 } : this.#plan,
      sent: () => this.#breaks("device frame"),
    });
    const { id } = gateway;
    this.#wires.set(id, [...(this.#wires.get(id) ?? []).filter(({ isBroken }) => !isBroken), wire]);
    return wire;
  }

  // ── Faults ──

  #opened(
    { id }: { readonly id: string },
    epoch: number,
    at: number,
    pieces: readonly Uint8Array[],
    by: string,
  ): void {
    const session = this.#session(id);
    session.log.opened({ epoch, at, pieces, by }, this.#order());
    if (pieces.length > 1) this.#probe("followed");
    if (!this.#faults.isOver && this.#draws.chance(this.#plan.moveAtOnce)) {
      this.#cluster.world.after(this.#draws.between(0, 30), () => this.#faults.move(session));
    }
  }

  /** With a gateway its channels go, and whoever has one finds out in their time. */
  #died(id: SiteId): void {
    for (const wire of this.#wires.get(id) ?? []) {
      this.#cluster.world.after(this.#draws.between(0, NOTICED_MS), () => wire.break());
    }
    this.#wires.delete(id);
  }
}
