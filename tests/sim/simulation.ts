/**
 * One run: a tree of real replicas in virtual time, clients and faults, then peace, then the checkers.
 *
 * Stages: start (in drawn order) → safety phase (clients and faults) → healing → liveness phase (everything ends,
 * everything is pushed, all that sites cover is the root's) → last looks by every session → checks.
 */
import type { OpenReplica } from "../../store/api.ts";
import type { SiteId } from "../../store/ports.ts";
import { checkSessions } from "./check_sessions.ts";
import { checkSites } from "./check_sites.ts";
import { Client } from "./client.ts";
import type { Crossing } from "./crash_points.ts";
import { Faults } from "./faults.ts";
import type { Held, History, HistoryEvent, Violation } from "./history.ts";
import { Keyspace } from "./keyspace.ts";
import { type LinkQuality, SimNetwork } from "./network.ts";
import { systemRows, watchGroup, writeSystemRow } from "./observers.ts";
import { Probes } from "./probes.ts";
import { Draws } from "./random.ts";
import { SimSite, type SiteProcess } from "./site.ts";
import { drawPlan, type Plan, type SitePlan } from "./topology.ts";
import { World } from "./world.ts";

/** What a run may be told. */
export interface RunOptions {
  readonly seed: number;
  readonly open: OpenReplica;
  /** So many sites instead of the few that a seed draws. */
  readonly sites?: number;
  /** Replaces parts of the plan that the seed draws. */
  readonly change?: (plan: Plan) => Plan;
  /** Hears every message as it leaves. */
  readonly trace?: (atMs: number, from: SiteId, to: SiteId, message: Uint8Array) => void;
  /** Hears of every place where a crash could hit, as a site passes it. */
  readonly survey?: (crossing: Crossing) => void;
}

/** What a run gives. */
export interface RunResult {
  readonly seed: number;
  readonly plan: Plan;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly probes: Record<string, number>;
  readonly events: number;
  /** The names of all faults that were drawn, for `plan.only`. */
  readonly faults: readonly string[];
}

/** Virtual time within which a cluster without faults must have finished what it was at: waits are 2 s at most. */
const PEACE_MS_MAX = 30_000;
/** The same, where clocks were so wrong that what was said then is dated up to so much ahead. */
const HEAL_MS_MAX = 75_000;
const POLL_MS = 20;

/** Runs a seed. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const plan = (options.change ?? ((same) => same))(drawPlan(options.seed, options.sites));
  return await new Simulation(options, plan).run();
}

class Simulation {
  readonly #options: RunOptions;
  readonly #plan: Plan;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #keyspace: Keyspace;
  readonly #probes = new Probes();
  readonly #events: HistoryEvent[] = [];
  readonly #network: SimNetwork;
  readonly #sites = new Map<SiteId, SimSite>();
  readonly #clients: Client[] = [];
  readonly #faults: Faults;
  /** By site: the system rows that it showed last. */
  readonly #systemRows = new Map<SiteId, readonly string[]>();
  #isLooking = false;
  #nextLookMs = 0;
  #lookEveryMs = POLL_MS;
  readonly #root: SiteId;

  constructor(options: RunOptions, plan: Plan) {
    this.#options = options;
    this.#plan = plan;
    this.#draws = new Draws(`run ${options.seed}`);
    this.#keyspace = new Keyspace(plan);
    const plans = new Map(plan.sites.map((site) => [site.id, site]));
    const world = this.#world;
    const record = (event: HistoryEvent) => void this.#events.push(event);
    this.#root = plan.sites.find((site) => site.parent === null)?.id ?? "";
    const { trace } = options;
    this.#network = new SimNetwork({
      world,
      draws: this.#draws.fork("network"),
      parentOf: (site) => this.#sites.get(site)?.parent ?? null,
      quality: (a, b) => qualityOf(plans, a, b),
      window: plan.linkWindow,
      noticeMs: plan.noticeMs,
      lateChance: plan.lateChance,
      tap: (from, to, message) => trace?.(world.nowMs, from, to, message),
      left: (from, _, message) => this.#faults.points.passedMessage(from, message, "leaves"),
      arrived: (_, to, message) => this.#faults.points.passedMessage(to, message, "arrives"),
    });
    const { open } = options;
    const around = {
      world,
      network: this.#network,
      keyspace: this.#keyspace,
      probes: this.#probes,
      plan,
      record,
      open,
      keepChance: plan.keepChance,
      horizonMs: plan.horizonMs,
      pendingBytesMax: plan.pendingBytesMax,
      compareRowsBytes: plan.compareRowsBytes,
      serving: (site: SiteId, process: SiteProcess) => {
        if (plan.watch?.site === site) watchGroup(site, process, plan.watch.group, around);
      },
      passed: (site: SiteId, point: string) => this.#faults.points.passed(site, point),
    };
    for (const site of plan.sites) {
      this.#sites.set(site.id, new SimSite(site, around, this.#draws.fork(`site ${site.id}`)));
    }
    const counters = { requests: 0, issues: 0, writes: 0 };
    for (let i = 0; i < plan.sessions; i++) {
      const shared = { ...around, sites: this.#sites, counters };
      this.#clients.push(new Client(i, shared, this.#draws.fork(`client ${i}`)));
    }
    const sites = [...this.#sites.values()];
    const survey = options.survey === undefined ? {} : { survey: options.survey };
    this.#faults = new Faults({ ...around, ...survey, sites }, this.#draws.fork("faults"));
  }

  async run(): Promise<RunResult> {
    this.#schedule();
    await this.#world.run(this.#plan.safetyMs);
    let healed = false;
    void this.#faults.end().then(() => healed = true);
    await this.#peace("faults end", () => healed, HEAL_MS_MAX);
    await this.#peace("requests end", () => this.#isIdle());
    await this.#peace("pushes drain", () => this.#isPushed());
    const draws = this.#draws.fork("looks");
    for (const client of this.#clients) {
      for (let looks = 0; looks < 2; looks++) client.look(draws.pick(this.#plan.sites).id);
    }
    await this.#peace("last looks end", () => this.#isIdle());
    // Whether they did is for the checker to say.
    await this.#peace(
      null,
      () => this.#isPushed() && this.#isConverged() && this.#isSystemConverged(),
    );
    await this.#peace("sites find each other alive", () => this.#isFound());
    await this.#peace("owners have what is theirs", () => this.#isWarded());
    // The choice of owners is a row, too.
    await this.#peace(null, () => this.#isPushed() && this.#isConverged() && this.#isSystemConverged());
    // What is watched is covered again in a trip or two after a parent was lost.
    await this.#peace(null, () => this.#isWatching());
    this.#finish();
    const parents = new Map(this.#plan.sites.map((site) => [site.id, site.parent]));
    const owners = new Map(this.#plan.sites.map((site) => [site.id, site.owners.f]));
    const history: History = {
      keys: this.#keyspace.size,
      root: this.#root,
      parents,
      owners,
      events: this.#events,
    };
    const excused = (what: string) => this.#probes.count(`excused ${what}`);
    return {
      seed: this.#options.seed,
      plan: this.#plan,
      history,
      violations: [...this.#stuck(), ...checkSessions(history, excused), ...checkSites(history, excused)]
        .sort((a, b) => a.atMs - b.atMs),
      probes: this.#probes.all(),
      events: this.#world.events,
      faults: this.#faults.names,
    };
  }

  #schedule(): void {
    const draws = this.#draws.fork("schedule");
    const startMs = draws.pick([0, 5, 100]);
    for (const site of this.#sites.values()) {
      this.#world.at(draws.between(0, startMs), () => void site.start());
    }
    const { requests, safetyMs, concurrency, systemWrites, only } = this.#plan;
    const root = this.#sites.get(this.#root);
    for (let i = 0; i < systemWrites && root !== undefined; i++) {
      this.#world.at(draws.between(startMs, safetyMs), () => void writeSystemRow(root, draws));
    }
    for (let i = 0; i < requests; i++) {
      // Each has a stream of its own: one of them less leaves all others as they are.
      const own = draws.fork(`request ${i}`);
      if (only?.requests?.includes(i) === false) continue;
      this.#world.at(own.between(startMs / 2, safetyMs), () => {
        const client = own.pick(this.#clients);
        if (client.busy < concurrency) client.request(own);
      });
    }
  }

  async #peace(what: string | null, done: () => boolean, ms = PEACE_MS_MAX): Promise<void> {
    const untilMs = this.#world.nowMs + ms;
    while (this.#world.nowMs < untilMs) {
      if (done()) return;
      await this.#world.run(this.#world.nowMs + POLL_MS);
    }
    if (what === null) return;
    this.#events.push({ kind: "fault", atMs: this.#world.nowMs, text: `stuck: ${what}` });
  }

  #isIdle(): boolean {
    return this.#clients.every((client) => client.busy === 0);
  }

  #isPushed(): boolean {
    return this.#present().every((site) => {
      const process = site.process;
      return process !== null && process.ready && process.replica.status().pending === 0 &&
        !process.storage.isCommitting;
    });
  }

  /** Those who may own what arrives at a site are known to it as alive, and enough of them. */
  #isFound(): boolean {
    const present = this.#present();
    return present.every((site) => {
      const { watched = [], ownersMissing } = site.process?.replica.status() ?? {};
      const isMet = ownersMissing === null || site.plan.owners.f >= present.length;
      return isMet && watched.every(({ standing }) => standing === "alive");
    });
  }

  /** Each site has owners in effect, and does not look for others. */
  #isWarded(): boolean {
    const present = this.#present();
    return present.every(({ plan: { parent, owners }, process }) => {
      const wards = process?.replica.status().wards;
      if (parent === null || owners.f === 0 || owners.f >= present.length || wards === undefined) return true;
      return wards.next === null && !wards.isClosed && (wards.owners.length === owners.f);
    });
  }

  /** Who watches rows covers them. */
  #isWatching(): boolean {
    const { watch } = this.#plan;
    if (watch === null) return true;
    const process = this.#sites.get(watch.site)?.process ?? null;
    const keys = this.#keyspace.groups[watch.group]?.keys ?? [];
    return process === null || keys.every((key) => process.storage.covered.has(key));
  }

  /** All sites that belong to the tree. */
  #present(): SimSite[] {
    return [...this.#sites.values()].filter((site) => !this.#faults.isGone(site));
  }

  #isConverged(): boolean {
    const root = this.#sites.get(this.#root)?.process?.storage;
    if (root === undefined) return false;
    return this.#present().every((site) => {
      const storage = site.process?.storage;
      if (storage === undefined) return false;
      return storage.covered.values().every((key) => isSame(storage.rows.get(key), root.rows.get(key)));
    });
  }

  /** Looks at all system rows again and again; never waits itself, since a read may need virtual time to pass. */
  #isSystemConverged(): boolean {
    if (!this.#isLooking && this.#world.nowMs >= this.#nextLookMs) {
      this.#isLooking = true;
      // What all sites show is much where they are many: each look is twice as far from the one before.
      this.#nextLookMs = this.#world.nowMs + this.#lookEveryMs;
      this.#lookEveryMs *= 2;
      const looks = [...this.#sites].map(async ([id, { process }]) => {
        if (process !== null) this.#systemRows.set(id, await systemRows(process).catch(() => []));
      });
      void Promise.all(looks).then(() => this.#isLooking = false);
    }
    const shown = [...this.#systemRows.values()].map((rows) => rows.join());
    return shown.length === this.#present().length && new Set(shown).size === 1;
  }

  #finish(): void {
    const atMs = this.#world.nowMs;
    for (const [id, site] of this.#sites) {
      const process = site.process;
      if (process === null) continue;
      site.tally();
      const { storage, replica } = process;
      const rows = [...storage.rows.values()];
      const covers = [...storage.covered];
      this.#events.push({ kind: "final", atMs, site: id, rows, covers, pending: replica.status().pending });
      this.#events.push({ kind: "system", atMs, site: id, rows: this.#systemRows.get(id) ?? [] });
    }
    for (const [name, count] of Object.entries(this.#network.counts)) {
      this.#probes.count(`link ${name}`, count);
    }
    this.#probes.count("events", this.#world.events);
  }

  /** What the simulator itself saw going wrong. */
  #stuck(): Violation[] {
    return this.#events.flatMap((event) => {
      if (event.kind !== "fault") return [];
      const { atMs, text } = event;
      if (text.startsWith("stuck: ")) return [{ checker: "liveness", message: text, atMs }];
      return text.includes("fatal: ") ? [{ checker: "fault", message: text, atMs }] : [];
    });
  }
}

/** A link of the tree is as its lower end says. */
function qualityOf(plans: ReadonlyMap<SiteId, SitePlan>, a: SiteId, b: SiteId): LinkQuality {
  const [one, other] = [plans.get(a), plans.get(b)];
  if (one === undefined || other === undefined) throw new Error(`no link joins ${a} and ${b}`);
  const link = one.parent === b ? one : other.parent === a ? other : null;
  if (link !== null) {
    return { delayMs: link.linkMs, lossChance: link.linkLoss, bytesPerMs: link.linkBytesPerMs };
  }
  // Edges often are nearer to each other than to what lies above them.
  const [least, greatest] = one.linkMs[0] < other.linkMs[0] ? one.linkMs : other.linkMs;
  return {
    delayMs: one.peerMs ?? [least * 2, greatest * 2],
    lossChance: Math.max(one.linkLoss, other.linkLoss),
    bytesPerMs: Math.min(one.linkBytesPerMs, other.linkBytesPerMs),
  };
}

function isSame(a: Held | undefined, b: Held | undefined): boolean {
  if (a?.sums !== undefined || b?.sums !== undefined) {
    return [...a?.sums ?? []].sort().join() === [...b?.sums ?? []].sort().join();
  }
  const live = (row: Held | undefined) => row === undefined || row.write === null ? "" : row.stamp;
  return live(a) === live(b);
}
