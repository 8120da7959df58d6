/**
 * A tree of real replicas in virtual time, with its clients and faults: what runs are made of (simulation.ts, and
 * tests/sites with what sites have above their replicas).
 *
 * Stages: `schedule` → the caller lets time pass → `faults.end` → `peace` until this and that holds → `finish`.
 */
import type { OpenReplica } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { Client, type ClientCalls } from "./client.ts";
import type { Crossing } from "./crash_points.ts";
import { Faults } from "./faults.ts";
import type { Held, History, HistoryEvent, Violation } from "./history.ts";
import { Keyspace } from "./keyspace.ts";
import { type LinkQuality, SimNetwork } from "./network.ts";
import type { DiskWatch } from "./recording.ts";
import { systemRows, watchGroup, writeSystemRow } from "./observers.ts";
import { Probes } from "./probes.ts";
import { Draws } from "./random.ts";
import { type Above, SimSite, type SiteProcess } from "./site.ts";
import type { Plan, SitePlan } from "./topology.ts";
import { World } from "./world.ts";

/** What a cluster is told beside its plan. */
export interface ClusterOptions {
  /** Of its stream of draws. */
  readonly name: string;
  readonly open: OpenReplica;
  /** Hears every message as it leaves. */
  readonly trace?: ((atMs: number, from: SiteId, to: SiteId, message: Uint8Array) => void) | undefined;
  /** Hears of every place where a crash could hit, as a site passes it. */
  readonly survey?: ((crossing: Crossing) => void) | undefined;
  /** Hears of every place that a site passes, messages by their direction only; before crashes that are wanted. */
  readonly passed?: (site: SiteId, point: string) => void;
  /** What each site has above its replica. */
  readonly above?: (site: SimSite, cluster: Cluster) => Above;
  readonly disks?: DiskWatch;
  /** How clients call what is above the replicas. */
  readonly calls?: ClientCalls;
}

/** A look at the system rows of all sites: what they were at one time, and may not be any more. */
interface Look {
  /** By site: those that it showed, once it has. */
  readonly rows: Map<SiteId, readonly string[]>;
  isOver: boolean;
  /** Nothing may be judged by it: rows may have been written since. */
  isVoid: boolean;
}

/** Virtual time within which a cluster without faults must have finished what it was at: waits are 2 s at most. */
const PEACE_MS_MAX = 30_000;
/** A root that is alone believes a clock that has stayed for a minute (store/model/limits.ts CLOCK_STAYS_MS). */
const IN_TIME_MS_MAX = 70_000;
const POLL_MS = 20;

/** See the file's header. */
export class Cluster {
  readonly plan: Plan;
  readonly world = new World();
  readonly draws: Draws;
  readonly keyspace: Keyspace;
  readonly probes = new Probes();
  readonly events: HistoryEvent[] = [];
  readonly network: SimNetwork;
  readonly sites = new Map<SiteId, SimSite>();
  readonly clients: Client[] = [];
  readonly faults: Faults;
  readonly root: SiteId;
  /** Of requests, tokens and writes: nobody's twice. */
  readonly counters = { requests: 0, issues: 0, writes: 0 };
  #look: Look = { rows: new Map(), isOver: true, isVoid: true };
  #nextLookMs = 0;
  #lookEveryMs = POLL_MS;
  #overhears: (from: SiteId, to: SiteId, message: Uint8Array) => void = () => {};

  constructor(plan: Plan, options: ClusterOptions) {
    this.plan = plan;
    this.draws = new Draws(options.name);
    this.keyspace = new Keyspace(plan);
    const plans = new Map(plan.sites.map((site) => [site.id, site]));
    const world = this.world;
    const record = (event: HistoryEvent) => void this.events.push(event);
    this.root = plan.sites.find((site) => site.parent === null)?.id ?? "";
    const { trace, open, survey, above, disks, calls, passed } = options;
    this.network = new SimNetwork({
      world,
      draws: this.draws.fork("network"),
      parentOf: (site) => this.sites.get(site)?.parent ?? null,
      quality: (a, b) => qualityOf(plans, a, b),
      window: plan.linkWindow,
      noticeMs: plan.noticeMs,
      lateChance: plan.lateChance,
      tap: (from, to, message) => trace?.(world.nowMs, from, to, message),
      left: (from, _, message) => {
        passed?.(from, "message leaves");
        this.faults.points.passedMessage(from, message, "leaves");
      },
      arrived: (from, to, message) => {
        this.#overhears(from, to, message);
        passed?.(to, "message arrives");
        this.faults.points.passedMessage(to, message, "arrives");
      },
    });
    const around = {
      world,
      network: this.network,
      keyspace: this.keyspace,
      probes: this.probes,
      plan,
      record,
      open,
      keepChance: plan.keepChance,
      horizonMs: plan.horizonMs,
      pendingBytesMax: plan.pendingBytesMax,
      compareRowsBytes: plan.compareRowsBytes,
      stepRows: plan.stepRows,
      serving: (site: SiteId, process: SiteProcess) => {
        if (plan.watch?.site === site) watchGroup(site, process, plan.watch.group, around);
      },
      passed: (site: SiteId, point: string) => {
        passed?.(site, point);
        this.faults.points.passed(site, point);
      },
      ...(above === undefined ? {} : { above: (site: SimSite) => above(site, this) }),
      ...(disks === undefined ? {} : { disks }),
      ...(calls === undefined ? {} : { calls }),
    };
    for (const site of plan.sites) {
      this.sites.set(site.id, new SimSite(site, around, this.draws.fork(`site ${site.id}`)));
    }
    for (let i = 0; i < plan.sessions; i++) {
      const shared = { ...around, sites: this.sites, counters: this.counters };
      this.clients.push(new Client(i, shared, this.draws.fork(`client ${i}`)));
    }
    const sites = [...this.sites.values()];
    this.faults = new Faults(
      { ...around, ...(survey === undefined ? {} : { survey }), sites },
      this.draws.fork("faults"),
    );
  }

  schedule(): void {
    const draws = this.draws.fork("schedule");
    const startMs = draws.pick([0, 5, 100]);
    for (const site of this.sites.values()) {
      const atMs = draws.between(0, startMs);
      this.world.at(site.plan.comesMs ?? atMs, () => void site.start());
    }
    const { requests, safetyMs, concurrency, systemWrites, only } = this.plan;
    const root = this.sites.get(this.root);
    for (let i = 0; i < systemWrites && root !== undefined; i++) {
      this.world.at(draws.between(startMs, safetyMs), () => void writeSystemRow(root, draws));
    }
    for (let i = 0; i < requests; i++) {
      // Each has a stream of its own: one of them less leaves all others as they are.
      const own = draws.fork(`request ${i}`);
      if (only?.requests?.includes(i) === false) continue;
      this.world.at(own.between(startMs / 2, safetyMs), () => {
        const client = own.pick(this.clients);
        if (client.busy < concurrency) client.request(own);
      });
    }
  }

  /** Lets time pass until something holds; where it takes longer, and has a name, that is a violation. */
  async peace(what: string | null, done: () => boolean, ms = PEACE_MS_MAX): Promise<void> {
    const untilMs = this.world.nowMs + ms;
    while (this.world.nowMs < untilMs) {
      if (done()) return;
      await this.world.run(this.world.nowMs + POLL_MS);
    }
    if (what === null) return;
    this.events.push({ kind: "fault", atMs: this.world.nowMs, text: `stuck: ${what}` });
  }

  /** No client waits for anything. */
  isIdle(): boolean {
    return this.clients.every((client) => client.busy === 0);
  }

  /** The root has all. */
  isPushed(): boolean {
    return this.present().every((site) => {
      const process = site.process;
      return process !== null && process.ready && process.replica.status().pending === 0 &&
        !process.storage.isCommitting;
    });
  }

  /** Those who may own what arrives at a site are known to it as alive, and enough of them. */
  isFound(): boolean {
    const present = this.present();
    return present.every((site) => {
      const { watched = [], ownersMissing } = site.process?.replica.status() ?? {};
      const isMet = ownersMissing === null || site.plan.owners.f >= present.length;
      const isThere = (site: SiteId) => present.some(({ plan: { id } }) => id === site);
      return isMet && watched.every(({ site, standing }) => standing === "alive" || !isThere(site));
    });
  }

  /** Each site has owners in effect, and does not look for others. */
  isWarded(): boolean {
    const present = this.present();
    return present.every(({ plan: { parent, owners }, process }) => {
      const wards = process?.replica.status().wards;
      if (parent === null || owners.f === 0 || owners.f >= present.length || wards === undefined) return true;
      return wards.next === null && !wards.isClosed && (wards.owners.length === owners.f);
    });
  }

  /** Who watches rows covers them. */
  isWatching(): boolean {
    const { watch } = this.plan;
    if (watch === null) return true;
    const process = this.sites.get(watch.site)?.process ?? null;
    const keys = this.keyspace.groups[watch.group]?.keys ?? [];
    return process === null || keys.every((key) => process.storage.covered.has(key));
  }

  /** All sites that belong to the tree. */
  present(): SimSite[] {
    return [...this.sites.values()].filter((site) => !this.faults.isGone(site));
  }

  /** What sites cover is as at the root. */
  isConverged(): boolean {
    const root = this.sites.get(this.root)?.process?.storage;
    if (root === undefined) return false;
    return this.present().every((site) => {
      const storage = site.process?.storage;
      if (storage === undefined) return false;
      return storage.covered.values().every((key) => isSame(storage.rows.get(key), root.rows.get(key)));
    });
  }

  /** All is at the root, and everywhere as there: system rows, too, as of since it was so of the others. */
  isEven(): boolean {
    if (this.isPushed() && this.isConverged()) return this.#isSystemEven();
    this.#look.isVoid = true;
    return false;
  }

  /** Looks at all system rows again and again; never waits itself, since a read may need virtual time to pass. */
  #isSystemEven(): boolean {
    const { rows, isOver, isVoid } = this.#look;
    if (isOver && !isVoid) {
      const shown = [...rows.values()].map((each) => each.join());
      // No other look is begun: it would tell in the end of rows on their way, as they are not for long.
      if (shown.length === this.present().length && new Set(shown).size === 1) return true;
    }
    if ((isOver || isVoid) && this.world.nowMs >= this.#nextLookMs) this.#beginLook();
    return false;
  }

  #beginLook(): void {
    const look: Look = this.#look = { rows: new Map(), isOver: false, isVoid: false };
    // What all sites show is much where they are many: each look is twice as far from the one before.
    this.#nextLookMs = this.world.nowMs + this.#lookEveryMs;
    this.#lookEveryMs *= 2;
    const reads = [...this.sites].map(async ([id, { process }]) => {
      if (process !== null) look.rows.set(id, await systemRows(process).catch(() => []));
    });
    void Promise.all(reads).then(() => look.isOver = true);
  }

  /** Notes what is there in the end. */
  finish(): void {
    const atMs = this.world.nowMs;
    for (const [id, site] of this.sites) {
      const process = site.process;
      if (process === null) {
        if (!this.faults.isGone(site)) {
          this.events.push({ kind: "fault", atMs, text: `stuck: ${id} is not up` });
        }
        continue;
      }
      site.tally();
      const { storage, replica, clock } = process;
      const rows = [...storage.rows.values()];
      const covers = [...storage.covered];
      const { pending } = replica.status(), aheadMs = clock.aheadMs(replica.nowMs());
      this.events.push({ kind: "final", atMs, site: id, rows, covers, pending, aheadMs });
      this.events.push({ kind: "system", atMs, site: id, rows: this.#look.rows.get(id) ?? [] });
    }
    for (const [name, count] of Object.entries(this.network.counts)) {
      this.probes.count(`link ${name}`, count);
    }
    this.probes.count("events", this.world.events);
  }

  /** The last stages, once all requests have ended: everything is at the root, and as there. */
  async settle(): Promise<void> {
    await this.#evenOut();
    await this.peace("sites find each other alive", () => this.isFound());
    await this.peace("owners have what is theirs", () => this.isWarded());
    // The choice of owners is a row, too.
    await this.#evenOut();
    const evenMs = this.world.nowMs;
    // What is watched is covered again in a trip or two after a parent was lost, and as of then.
    await this.peace(null, () => this.isWatching() && this.isConverged());
    if (!this.#hasWrongClocks) await this.peace(null, () => this.isInTime(), IN_TIME_MS_MAX);
    // Meanwhile a site may have chosen nearer owners.
    if (this.world.nowMs > evenMs) await this.#evenOut();
  }

  /** Whether all came to be even is for the checker to say. What was seen before, rows written since are not in. */
  async #evenOut(): Promise<void> {
    this.#look.isVoid = true;
    this.#nextLookMs = 0;
    this.#lookEveryMs = POLL_MS;
    await this.peace(null, () => this.isEven());
  }

  /** Hears every message from now on, as it arrives. */
  overhear(hears: (from: SiteId, to: SiteId, message: Uint8Array) => void): void {
    this.#overhears = hears;
  }

  /** Lets so much time pass for all, at once, in which nothing happens. */
  letPass(ms: number): void {
    this.world.sleptMs += ms;
    for (const site of this.sites.values()) site.napped();
  }

  /** Nobody doubts a clock of which all are right. */
  isInTime(): boolean {
    return this.present().every(({ process }) => process?.replica.status().clockDoubt === null);
  }

  get #hasWrongClocks(): boolean {
    return this.plan.faults.leap + this.plan.faults.warp > 0;
  }

  /** @param events all that were observed, where that is more than what was noted here. */
  history(events: readonly HistoryEvent[] = this.events): History {
    const { sites, horizonMs, watch } = this.plan;
    const parents = new Map(sites.map((site) => [site.id, site.parent]));
    const owners = new Map(sites.map((site) => [site.id, site.owners.f]));
    const watched = this.keyspace.groups[watch?.group ?? -1];
    const skewsMs = sites.map(({ skewMs }) => skewMs);
    return {
      ...{ keys: this.keyspace.size, root: this.root, parents, owners, horizonMs, events },
      hasWrongClocks: this.#hasWrongClocks,
      clocksApartMs: Math.max(...skewsMs) - Math.min(...skewsMs),
      ...(watch === null || watched === undefined ? {} : { watch: { site: watch.site, keys: watched.keys } }),
    };
  }

  /** What the simulator itself saw going wrong. */
  stuck(): Violation[] {
    return this.events.flatMap((event) => {
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
