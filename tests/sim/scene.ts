/**
 * A small tree of real replicas in virtual time that a test directs: what the seeds of the simulator draw, it says.
 *
 * Disks take 1 ms, links what the test says, from the first to the last message alike; nothing is drawn. Whatever is
 * asked of a site runs in its own time: {@link Scene.done} lets time pass until it is over.
 */
import type { AttachedSession, OpenReplica, TokenState } from "../../store/api/api.ts";
import { HORIZON_MS, PENDING_BYTES_MAX } from "../../store/model/limits.ts";
import { decodeMessage, type Message } from "../../store/wire/message.ts";
import type { OwnersSettings } from "../../store/presence/choose.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { openReplica } from "../../store/replica.ts";
import type { HistoryEvent } from "./history.ts";
import { Keyspace } from "./keyspace.ts";
import { SimNetwork } from "./network.ts";
import { Probes } from "./probes.ts";
import { Draws } from "./random.ts";
import { SimSite, type SiteProcess } from "./site.ts";
import { drawPlan, type Plan, type SitePlan } from "./topology.ts";
import { World } from "./world.ts";

/** One site of a scene. */
export interface SceneSite {
  readonly parent: SiteId | null;
  /** One way to its parent. */
  readonly linkMs: number;
  readonly owners?: Partial<OwnersSettings>;
  readonly capacityBytes?: number;
}

/** What may be said of all sites. */
export interface SceneOptions {
  readonly open?: OpenReplica;
  readonly horizonMs?: number;
  readonly pendingBytesMax?: number;
  /** One way between sites of which neither is the other's parent. */
  readonly peerMs?: number;
  /** Time after which each end of a link that is cut notices it; else at once. */
  readonly noticeMs?: number;
  /** Keys of one group. */
  readonly keys?: number;
  /** Hears every message as it leaves. */
  readonly tap?: (from: SiteId, to: SiteId, message: Message) => void;
}

/** Virtual time within which whatever is waited for must have happened. */
const PATIENCE_MS = 30_000;
const STEP_MS = 1;

/** The tree. */
export class Scene {
  readonly world = new World();
  readonly network: SimNetwork;
  readonly keyspace: Keyspace;
  readonly probes = new Probes();
  /** What was observed, for checkers and to look at. */
  readonly events: HistoryEvent[] = [];
  readonly #sites = new Map<SiteId, SimSite>();

  constructor(sites: Readonly<Record<SiteId, SceneSite>>, options: SceneOptions = {}) {
    const { world } = this;
    const plan = planOf(sites, options), { noticeMs = 0 } = options;
    this.keyspace = new Keyspace(plan);
    const linkMs = (lower: SiteId) => sites[lower]?.linkMs ?? 1;
    const parentOf = (site: SiteId) => this.#sites.get(site)?.parent ?? null;
    this.network = new SimNetwork({
      world,
      draws: new Draws("scene network"),
      parentOf,
      quality: (a, b) => {
        const ms = parentOf(a) === b ? linkMs(a) : parentOf(b) === a ? linkMs(b) : options.peerMs ?? 1;
        return { delayMs: [ms, ms], lossChance: 0, bytesPerMs: Infinity };
      },
      window: 1_024,
      noticeMs: [noticeMs, noticeMs],
      lateChance: 0,
      tap: (from, to, bytes) => options.tap?.(from, to, decodeMessage(bytes)),
    });
    for (const site of plan.sites) {
      const around = {
        world,
        network: this.network,
        keyspace: this.keyspace,
        probes: this.probes,
        open: options.open ?? openReplica,
        keepChance: 0,
        horizonMs: plan.horizonMs,
        pendingBytesMax: plan.pendingBytesMax,
        compareRowsBytes: plan.compareRowsBytes,
        stepRows: plan.stepRows,
        record: (event: HistoryEvent) => void this.events.push(event),
        passed: () => {},
        serving: () => {},
      };
      this.#sites.set(site.id, new SimSite(site, around, new Draws(`scene ${site.id}`)));
    }
  }

  /** Starts all sites; over when each of them serves. */
  async start(): Promise<void> {
    for (const site of this.#sites.values()) void site.start();
    await this.until(() => [...this.#sites.values()].every(({ process }) => process?.ready === true));
  }

  site(id: SiteId): SimSite {
    const site = this.#sites.get(id);
    if (site === undefined) throw new Error(`there is no site ${id} in this scene`);
    return site;
  }

  /** The process that runs at a site. */
  process(id: SiteId): SiteProcess {
    const { process } = this.site(id);
    if (process === null) throw new Error(`site ${id} does not run`);
    return process;
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }

  /** All clocks jump: what comes due by age does, and links and short timers do not notice. */
  nap(ms: number): void {
    this.world.sleptMs += ms;
    for (const site of this.#sites.values()) site.napped();
  }

  /** Lets time pass until something holds. */
  async until(condition: () => boolean, ms = PATIENCE_MS): Promise<void> {
    const untilMs = this.world.nowMs + ms;
    while (!condition()) {
      if (this.world.nowMs >= untilMs) throw new Error(`waited ${ms} virtual ms in vain for: ${condition}`);
      await this.world.run(this.world.nowMs + STEP_MS, condition);
    }
  }

  /** Lets time pass until something is over. */
  async done<T>(what: Promise<T>): Promise<T> {
    const over: { settled?: { value: T } | { error: unknown } } = {};
    what.then((value) => over.settled = { value }, (error: unknown) => over.settled = { error });
    await this.until(() => over.settled !== undefined);
    const { settled } = over;
    if (settled === undefined || "error" in settled) throw settled?.error;
    return settled.value;
  }

  /** A session at a site, with the tokens it brings. */
  async attach(id: SiteId, ...tokens: readonly TokenState[]): Promise<AttachedSession> {
    const { replica } = this.process(id);
    const [only] = tokens;
    const attached = tokens.length > 1 ? replica.attachAll(tokens) : replica.attach(only ?? null);
    return await this.done(Promise.resolve(attached));
  }

  /** Writes a key of the scene as the write of a number; over when it is on disk. */
  async write(session: AttachedSession, key: number, write: number): Promise<void> {
    await this.done(
      session.write([{ kind: "set", key: this.keyspace.key(key), value: this.keyspace.value(write) }]),
    );
    await this.done(session.durable());
  }

  /** The number of the write that a session sees at a key; null: none. */
  async read(session: AttachedSession, key: number): Promise<number | null> {
    const [row] = await this.done(session.get([this.keyspace.key(key)]));
    return row === undefined ? null : this.keyspace.seen(row)?.write ?? null;
  }

  /** A site gets another parent; over when it has taken its number there and is welcomed. */
  async move(id: SiteId, to: SiteId, lost: readonly SiteId[] = []): Promise<void> {
    const before = this.process(id).replica.status().replica;
    this.site(id).move(to, lost);
    await this.until(() => this.process(id).replica.status().replica !== before);
  }
}

function planOf(sites: Readonly<Record<SiteId, SceneSite>>, options: SceneOptions): Plan {
  const inner = new Set(Object.values(sites).map(({ parent }) => parent));
  const depthOf = (id: SiteId): number => {
    const parent = sites[id]?.parent ?? null;
    return parent === null ? 0 : depthOf(parent) + 1;
  };
  const plans = Object.entries(sites).map(([id, { parent, linkMs, owners, capacityBytes }]): SitePlan => ({
    id,
    parent,
    depth: depthOf(id),
    tier: parent === null ? "root" : inner.has(id) ? "core" : "edge",
    skewMs: 0,
    capacityBytes: capacityBytes ?? 1 << 30,
    linkMs: [linkMs, linkMs],
    linkLoss: 0,
    linkBytesPerMs: Infinity,
    commitMs: [1, 1],
    owners: { ...NO_OWNERS, ...owners },
    readMs: null,
    drift: 0,
  }));
  return {
    ...drawPlan(0),
    sites: plans,
    groups: 1,
    keysPerGroup: options.keys ?? 8,
    sumKeys: 0,
    valueBytes: 0,
    horizonMs: options.horizonMs ?? HORIZON_MS,
    pendingBytesMax: options.pendingBytesMax ?? PENDING_BYTES_MAX,
  };
}
