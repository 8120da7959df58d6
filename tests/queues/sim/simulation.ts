/**
 * One run of queues: n sites with producers and consumers in virtual time, and faults drawn from the seed.
 *
 * Stages: safety phase (producers, consumers that fail in all ways, crashes, wipes of at most f disks, planned stops,
 * partitions, lossy links, a pause) → healing, and consumers do all that they get → what is dead is looked at, and an
 * operator has it come again → nothing is left anywhere.
 */
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { StoredMessage } from "../../../functions/queues/broker.ts";
import { QUEUE_DEFAULTS, type QueueSettings } from "../../../functions/queues/settings.ts";
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { World } from "../../sim/world.ts";
import { check, type History, type Ordered, type Told, type Violation } from "./check.ts";
import { type Behaviour, bodyOf, QueueSite, type Wrongs } from "./queue_site.ts";

/** What one queue is like. */
export interface QueuePlan {
  readonly name: string;
  readonly isPull: boolean;
  /** Places of sites with consumers. */
  readonly consumers: readonly number[];
  readonly settings: QueueSettings;
  /** Chance of each behaviour but `ack`. */
  readonly failChance: number;
  readonly killChance: number;
  readonly slowMs: number;
}

export interface QueuesPlan {
  readonly n: number;
  readonly f: number;
  readonly queues: readonly QueuePlan[];
  readonly messages: number;
  readonly safetyMs: number;
  readonly crashes: number;
  readonly wipes: number;
  readonly leaves: number;
  readonly partitions: number;
  readonly pauses: number;
  readonly lossChance: number;
  readonly commitMs: readonly [number, number];
  readonly delaysMs: readonly number[];
}

export interface QueuesRun {
  readonly seed: number;
  readonly plan: QueuesPlan;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
  readonly history: History;
}

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const HEAL_MS_MAX = 240_000;
const POLL_MS = 100;
/** So long a producer may wait for its answer. */
const ANSWER_MS_MAX = 5_000;
const AWAY_MS = [300, 2_000], RETURN_MS = [-250, -100, 100, 3_000];

/** Draws what a seed does. */
export function drawQueuesPlan(seed: number): QueuesPlan {
  const draws = new Draws(`queues plan ${seed}`);
  const n = draws.integer(1, 6), f = Math.min(draws.integer(0, 2), n - 1);
  const isCalm = draws.chance(0.25);
  const faults = (chance: number, most: number) =>
    !isCalm && draws.chance(chance) ? draws.integer(1, most) : 0;
  return {
    n,
    f,
    queues: Array.from({ length: draws.integer(1, 3) }, (_, i) => drawQueue(draws, `q${i}`, { n, f })),
    messages: draws.integer(5, 60),
    safetyMs: draws.integer(2_000, 10_000),
    crashes: faults(0.7, 5),
    wipes: f === 0 ? 0 : faults(0.3, f),
    leaves: faults(0.4, 3),
    partitions: faults(0.3, 3),
    pauses: draws.chance(0.2) ? 1 : 0,
    lossChance: isCalm ? 0 : draws.pick([0, 0, 0.05]),
    commitMs: draws.pick([[0.1, 0.4], [1, 4], [5, 40]] as const),
    delaysMs: Array.from({ length: n }, () => draws.pick([0.2, 1, 5, 20])),
  };
}

function drawQueue(draws: Draws, name: string, { n, f }: { n: number; f: number }): QueuePlan {
  const consumers = Array.from({ length: n }, (_, i) => i).filter(() => draws.chance(0.6));
  return {
    name,
    isPull: draws.chance(0.3),
    consumers: consumers.length > 0 ? consumers : [draws.integer(0, n - 1)],
    settings: {
      ...QUEUE_DEFAULTS,
      f,
      dedupeMs: 60_000,
      maxAttempts: draws.integer(1, 4),
      leaseMs: draws.pick([1_000, 2_500, 10_000]),
      retry: draws.pick([{ minMs: 20, maxMs: 500 }, { eachMs: [0] }, { eachMs: [10, 300, 1_000] }]),
      batchMax: draws.pick([1, 3, 10]),
      batchWaitMs: draws.pick([0, 0, 200]),
      concurrency: draws.pick([1, 2, 10]),
      perSecond: draws.pick([Infinity, Infinity, 5, 40]),
    },
    failChance: draws.pick([0, 0.2, 0.6]),
    killChance: draws.pick([0, 0, 0, 0.02]),
    slowMs: draws.pick([0, 30, 400]),
  };
}

/** Runs a seed. */
export function simulateQueues(
  seed: number,
  options: { wrongs?: Wrongs; change?: (plan: QueuesPlan) => QueuesPlan } = {},
): Promise<QueuesRun> {
  const { wrongs = {}, change = (same) => same } = options;
  return new QueuesSimulation(seed, change(drawQueuesPlan(seed)), wrongs).run();
}

class QueuesSimulation {
  readonly #seed: number;
  readonly #plan: QueuesPlan;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #network: SimNetwork;
  readonly #sites: readonly QueueSite[];
  readonly #told: Told[] = [];
  readonly #ordered: Ordered[] = [];
  readonly #probes: Record<string, number> = {};
  readonly #atRest: Violation[] = [];
  readonly #settings = new Map<string, QueueSettings>();
  readonly #away = new Map<SiteId, number>();
  /** Messages that take the site of their consumer with them. */
  readonly #poison = new Set<string>();
  #pending = 0;
  #isHealed = false;

  constructor(seed: number, plan: QueuesPlan, wrongs: Wrongs) {
    this.#seed = seed;
    this.#plan = plan;
    this.#draws = new Draws(`queues run ${seed}`);
    const world = this.#world, ids = Array.from({ length: plan.n }, (_, i) => `s${i}`);
    const delayOf = (site: SiteId) => plan.delaysMs[ids.indexOf(site)] ?? 1;
    const delayMs = (a: SiteId, b: SiteId) => delayOf(a) + delayOf(b);
    for (const { name, settings } of plan.queues) this.#settings.set(name, settings);
    this.#network = new SimNetwork({
      world,
      draws: this.#draws.fork("network"),
      parentOf: () => null,
      quality: (a, b) => ({
        delayMs: [delayMs(a, b), 1.5 * delayMs(a, b)],
        lossChance: plan.lossChance,
        bytesPerMs: Infinity,
      }),
      noticeMs: [0, 60],
      lateChance: 0,
      window: 64,
    });
    const behaviours = this.#draws.fork("behaviours");
    this.#sites = ids.map((id) => {
      const site = new QueueSite({
        id,
        sites: ids,
        owners: { ...NO_OWNERS, ...TIMES, f: plan.f, nearMs: 2 },
        areas: new Map(),
        away: this.#away,
        world,
        network: this.#network,
        draws: this.#draws.fork(id),
        commitMs: plan.commitMs,
        settings: (queue) => this.#settings.get(queue),
        pulls: (queue) => this.#queue(queue)?.isPull === true,
        outlets: (queue) => {
          const consumers = (this.#queue(queue)?.consumers ?? []).map((place) => `s${place}`);
          const far = (other: SiteId) => other === id ? 0 : delayMs(id, other);
          return consumers.sort((a, b) => far(a) - far(b) || (a < b ? -1 : 1));
        },
        rttMs: (other) => 2 * delayMs(id, other),
        behaves: (message) => this.#behaves(message, behaviours),
        wrongs,
        record: (event) => this.#tell(event),
        kill: (victim) => this.#kills(victim),
      });
      site.queueNames = plan.queues.map(({ name }) => name);
      return site;
    });
  }

  async run(): Promise<QueuesRun> {
    const plan = this.#plan, world = this.#world;
    for (const site of this.#sites) this.#start(site);
    await world.run(world.nowMs + 500);
    this.#produce();
    this.#disturb();
    await world.run(world.nowMs + plan.safetyMs);
    this.#network.heal();
    this.#tell({ kind: "healed" });
    this.#isHealed = true;
    this.#poison.clear();
    for (const site of this.#sites) this.#start(site);
    await this.#until("all live", () => this.#sites.every(({ isUp }) => isUp));
    await this.#until("sends end", () => this.#pending === 0);
    await this.#until("only dead ones are left", () => this.#waiting() === 0);
    await this.#redrive();
    await this.#until("nothing is left", () => this.#waiting() === 0 && this.#left() === 0);
    // What is still said of old ones changes nothing.
    await world.run(world.nowMs + 25_000);
    this.#count();
    const history: History = {
      told: this.#told,
      ordered: this.#ordered,
      settings: this.#settings,
      pulls: new Set(plan.queues.filter(({ isPull }) => isPull).map(({ name }) => name)),
      isCalm: this.#isCalm(),
    };
    const violations = check(history, (name) => this.#probe(`excused ${name}`));
    return {
      seed: this.#seed,
      plan,
      violations: [...this.#atRest, ...violations],
      probes: this.#probes,
      history,
    };
  }

  #isCalm(): boolean {
    const { crashes, wipes, leaves, partitions, lossChance, queues } = this.#plan;
    return crashes + wipes + leaves + partitions + lossChance === 0 &&
      queues.every(({ killChance }) => killChance === 0);
  }

  #queue(name: string): QueuePlan | undefined {
    return this.#plan.queues.find((queue) => queue.name === name);
  }

  #tell(event: Told extends infer T ? T extends Told ? Omit<T, "atMs"> : never : never): void {
    this.#told.push({ ...event, atMs: this.#world.nowMs } as Told);
  }

  #probe(name: string, by = 1): void {
    this.#probes[name] = (this.#probes[name] ?? 0) + by;
  }

  async #until(what: string, done: () => boolean): Promise<void> {
    const untilMs = this.#world.nowMs + HEAL_MS_MAX;
    while (!done() && this.#world.nowMs < untilMs) await this.#world.run(this.#world.nowMs + POLL_MS);
    if (done()) return;
    const left = this.#sites.map((site) =>
      `${site.id}: ${
        site.status().map(({ queue, ready, delayed, lent, dead }) =>
          `${queue} ${[ready, delayed, lent, dead]}`
        )
      }, ${site.tuples?.status().tuples}`
    );
    this.#complain(`it never came to this: ${what} (${left.join("; ")})`);
  }

  #complain(message: string): void {
    this.#atRest.push({ checker: "liveness", message, atMs: this.#world.nowMs });
  }

  // ── Producers ──

  #produce(): void {
    const draws = this.#draws.fork("producers"), { messages, safetyMs, queues } = this.#plan;
    for (let i = 0; i < messages; i++) {
      this.#world.after(draws.between(0, safetyMs), () => {
        const site = draws.pick(this.#sites), queue = draws.pick(queues);
        for (let many = draws.chance(0.2) ? 8 : 1; many > 0; many--) this.#order(site, queue, draws);
      });
    }
  }

  #messages = 0;

  #order(site: QueueSite, { name, killChance }: QueuePlan, draws: Draws): void {
    const message = `m${this.#messages++}`;
    const delayMs = draws.pick([0, 0, 0, 100, 1_500]);
    const ttlMs = draws.pick([null, null, null, 400, 3_000]);
    const isNamed = draws.chance(0.3);
    if (draws.chance(killChance)) this.#poison.add(message);
    this.#ordered.push({ message, queue: name, atMs: this.#world.nowMs, delayMs, ttlMs });
    const send = () => {
      const { queues } = site;
      if (queues === null) return this.#probe("producer finds nobody");
      this.#pending++;
      let isOver = false;
      const over = () => {
        if (!isOver) this.#pending--;
        isOver = true;
      };
      this.#world.after(ANSWER_MS_MAX, () => {
        // A process that dies answers nobody.
        if (!isOver && site.queues === queues) this.#complain(`a producer at ${site.id} is told nothing`);
        over();
      });
      site.send(name, {
        body: bodyOf(message),
        delayMs,
        ...(ttlMs === null ? {} : { ttlMs }),
        ...(isNamed ? { id: message } : {}),
      }).then((id) => {
        over();
        if (id !== null) this.#tell({ kind: "stored", message });
      }, (error) => {
        over();
        this.#probe(`refused ${error.code ?? error.message}`);
      });
    };
    send();
    // Only in a calm run is it known that it must be the same message: a site may lose what it knew of ids.
    if (isNamed && this.#isCalm()) this.#world.after(draws.between(0, 3_000), send);
  }

  // ── Consumers ──

  #behaves(message: string, draws: Draws): Behaviour {
    const order = this.#ordered.find((one) => one.message === message);
    const { failChance = 0, slowMs = 0 } = this.#queue(order?.queue ?? "") ?? {};
    const takesMs = draws.between(0, slowMs), ms = draws.pick([null, 0, 50, 700]);
    if (this.#poison.has(message)) return { takesMs, outcome: "kill", ms: null };
    if (this.#isHealed || !draws.chance(failChance)) return { takesMs, outcome: "ack", ms: null };
    const outcome = draws.pick(["retry", "retry", "throw", "reject", "silence"] as const);
    this.#probe(`consumer: ${outcome}`);
    return { takesMs, outcome, ms: outcome === "retry" ? ms : null };
  }

  #kills(victim: SiteId): void {
    const site = this.#sites.find(({ id }) => id === victim);
    this.#probe("fault: poison");
    site?.crash(false);
    if (site !== undefined) this.#world.after(300, () => this.#start(site));
  }

  // ── Operators ──

  /** What is dead is looked at, and comes again. */
  async #redrive(): Promise<void> {
    for (const site of this.#sites) {
      const broker = site.queues?.broker;
      if (broker === undefined) continue;
      for (const { name } of this.#plan.queues) {
        const dead: StoredMessage[] = [];
        const listing = broker.list(name, "dead", { limit: 10_000 }).then((found) => dead.push(...found));
        await this.#world.run(this.#world.nowMs + 200);
        await listing;
        for (const { envelope, death, attempts } of dead) {
          const message = new TextDecoder().decode(envelope.body);
          this.#probe(`dead: ${death?.cause}`);
          this.#tell({ kind: "dead", message, cause: death?.cause ?? "", attempts });
          this.#tell({ kind: "redriven", message });
        }
        broker.redrive(name).catch(() => {});
        await this.#world.run(this.#world.nowMs + 200);
      }
    }
  }

  #status(of: "waiting" | "dead"): number {
    return this.#sites.flatMap((site) => [...site.status()]).reduce(
      (sum, { ready, delayed, lent, dead }) => sum + (of === "dead" ? dead : ready + delayed + lent),
      0,
    );
  }

  #waiting(): number {
    return this.#status("waiting");
  }

  #left(): number {
    const tuples = this.#sites.reduce((sum, site) => sum + (site.tuples?.status().tuples ?? 0), 0);
    return this.#status("dead") + tuples;
  }

  #count(): void {
    for (const site of this.#sites) {
      for (const { counters } of site.status()) {
        for (const [name, times] of Object.entries(counters)) this.#probe(name, times);
      }
    }
  }

  // ── Faults ──

  #disturb(): void {
    const draws = this.#draws.fork("faults");
    const { crashes, wipes, leaves, partitions, pauses, safetyMs, queues } = this.#plan;
    for (let i = 0; i < crashes + wipes; i++) {
      const wipe = i >= crashes, downMs = draws.pick([0, 20, 400, 3_000]);
      this.#world.after(draws.between(0, safetyMs), () => {
        const site = draws.pick(this.#sites);
        if (!site.isUp) return;
        site.crash(wipe);
        this.#probe(wipe ? "fault: wipe" : "fault: crash");
        this.#world.after(downMs * draws.between(0.5, 1.5), () => this.#start(site));
      });
    }
    for (let i = 0; i < leaves; i++) {
      const awayMs = draws.pick(AWAY_MS), errorMs = draws.pick(RETURN_MS);
      this.#world.after(draws.between(0, safetyMs), () => {
        const site = draws.pick(this.#sites);
        if (!site.isUp || this.#away.has(site.id)) return;
        this.#probe("fault: planned stop");
        const untilMs = this.#world.nowMs + awayMs;
        this.#away.set(site.id, untilMs);
        void site.leave(untilMs, () => this.#world.at(untilMs + errorMs, () => this.#start(site)));
      });
    }
    for (let i = 0; i < partitions; i++) {
      const forMs = draws.pick([50, 500, 3_000]);
      this.#world.after(draws.between(0, safetyMs), () => {
        const some = this.#sites.filter(() => draws.chance(0.4));
        for (const a of some) {
          for (const b of this.#sites) {
            if (!some.includes(b)) this.#network.partition(a.id, b.id, this.#world.nowMs + forMs);
          }
        }
        this.#probe("fault: partition");
        this.#tell({ kind: "cut" });
        this.#world.after(forMs, () => this.#tell({ kind: "healed" }));
      });
    }
    for (let i = 0; i < pauses; i++) {
      const queue = draws.pick(queues), forMs = draws.integer(100, 2_000);
      this.#world.after(draws.between(0, safetyMs), () => {
        this.#probe("a pause");
        this.#configure(queue, { ...queue.settings, isPaused: true });
        this.#world.after(forMs, () => this.#configure(queue, queue.settings));
      });
    }
  }

  #configure({ name }: QueuePlan, settings: QueueSettings): void {
    this.#settings.set(name, settings);
    for (const site of this.#sites) site.queues?.configured(name).catch(() => {});
  }

  #start(site: QueueSite): void {
    // One that is about to stop comes back by itself.
    if (!site.isUp) void site.start().then(() => this.#away.delete(site.id));
  }
}
