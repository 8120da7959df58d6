/**
 * One run of owners groups: n sites that store, hold, act and remove in virtual time, and faults drawn from the seed.
 *
 * Stages: safety phase (producers, crashes, wipes of at most f disks, planned stops, partitions, slow links) → healing, until all
 * that are down, or about to stop as planned, are back → users pause: every tuple that is left is at f + 1 sites and acted on at
 * one → users go on: nothing is left anywhere.
 */
import { packKey } from "../../../store/model/key.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import { decodeState } from "../../../store/owners/tuple.ts";
import type { TupleMark } from "../../../store/owners/packet.ts";
import type { NewTuple } from "../../../store/owners/tuples.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { World } from "../../sim/world.ts";
import { check, type History, type Told, type Violation } from "./check.ts";
import { OwnerSite, type Wrongs } from "./owner_site.ts";

export interface OwnersPlan {
  readonly n: number;
  readonly f: number;
  readonly tuples: number;
  readonly payloadBytes: number;
  readonly safetyMs: number;
  readonly crashes: number;
  /** Planned stops, with a time of return that is kept or not. */
  readonly leaves: number;
  /** Chance that a site which has adopted what one had that crashed stops as planned just as that one is back. No seed draws it. */
  readonly leavesAtReturn: number;
  /** Disks lost, in all: at most f. */
  readonly wipes: number;
  readonly partitions: number;
  readonly slow: boolean;
  /** Chance that a message has to be sent again, and that a cut lets some of what is under way arrive. */
  readonly lossChance: number;
  readonly lateChance: number;
  /** Of each site. */
  readonly tuplesMax: number;
  /** Of producers that give an id, and send some again. */
  readonly namedChance: number;
  /** So long an id is stored once. */
  readonly dedupeMs: number;
  /** At most so often a tuple is marked before it is acted on. */
  readonly tries: number;
  readonly nearMs: number;
  readonly commitMs: readonly [number, number];
  readonly thinkMs: readonly [number, number];
  /** Sites and pairs of sites, by their delay in ms. */
  readonly delaysMs: readonly number[];
  /** Some tuples want as few other owners as this, */
  readonly fLeast: number;
  /** and all that come in the second half as many as this. */
  readonly fLater: number;
}

export interface OwnersRun {
  readonly seed: number;
  readonly plan: OwnersPlan;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
  readonly history: History;
}

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const HEAL_MS_MAX = 90_000;
const POLL_MS = 50;
/** So long a producer may wait for its answer. */
const ANSWER_MS_MAX = 5_000;
/** So soon after one is back another one stops, where it does: before the two have told each other all, or after. */
const AT_RETURN_MS = [0, 60] as const;
/** How long a site says that it is away, and by how much it errs. */
const AWAY_MS = [300, 2_000], RETURN_MS = [-250, -100, 100, 3_000];

/** Draws what a seed does. */
export function drawOwnersPlan(seed: number): OwnersPlan {
  const draws = new Draws(`owners plan ${seed}`);
  const odd = draws.fork("odd");
  const n = draws.integer(2, 7);
  const wipesMost = draws.chance(0.5) ? 3 : 0;
  const f = draws.integer(1, Math.min(3, n - 1));
  const wipes = wipesMost === 0 ? 0 : draws.integer(1, f);
  const faults = (chance: number, most: number) => draws.chance(chance) ? draws.integer(1, most) : 0;
  return {
    n,
    f,
    tuples: draws.integer(10, 80),
    payloadBytes: draws.chance(0.9) ? draws.integer(0, 300) : 300_000,
    safetyMs: draws.integer(1_000, 8_000),
    crashes: faults(0.7, 6),
    leaves: odd.chance(0.4) ? odd.integer(1, 4) : 0,
    leavesAtReturn: 0,
    wipes,
    partitions: faults(0.3, 4),
    slow: draws.chance(0.1),
    lossChance: draws.pick([0, 0, 0.05]),
    lateChance: draws.pick([0, 0.5]),
    tuplesMax: odd.chance(0.1) ? odd.integer(5, 40) : Infinity,
    namedChance: odd.pick([0, 0.3, 1]),
    dedupeMs: odd.pick([3_000, 20_000]),
    tries: odd.pick([0, 0, 2]),
    nearMs: draws.pick([0, 2, 10]),
    commitMs: draws.pick([[0.1, 0.4], [1, 4], [5, 40]] as const),
    thinkMs: draws.pick([[0, 5], [10, 100], [200, 2_000]] as const),
    delaysMs: Array.from({ length: n }, () => draws.pick([0.2, 1, 5, 20])),
    fLeast: odd.chance(0.3) ? odd.integer(wipes, f) : f,
    fLater: draws.chance(0.2) ? draws.integer(wipes, Math.min(3, n - 1)) : f,
  };
}

/** Runs a seed. */
export function simulateOwners(
  seed: number,
  options: { wrongs?: Wrongs; change?: (plan: OwnersPlan) => OwnersPlan } = {},
): Promise<OwnersRun> {
  const { wrongs = {}, change = (same) => same } = options;
  return new OwnersSimulation(seed, change(drawOwnersPlan(seed)), wrongs).run();
}

/** A site that has a tuple, as it has it. */
interface Holder {
  readonly site: SiteId;
  readonly owners: readonly SiteId[];
  readonly mark: TupleMark | null;
}

class OwnersSimulation {
  readonly #seed: number;
  readonly #plan: OwnersPlan;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #network: SimNetwork;
  readonly #sites: readonly OwnerSite[];
  readonly #told: Told[] = [];
  readonly #acks: {
    readonly id: string;
    readonly atMs: number;
    readonly copies: number;
    readonly f: number;
  }[] = [];
  readonly #probes: Record<string, number> = {};
  readonly #atRest: Violation[] = [];
  #pending = 0;
  #names = 0;
  /** What each tuple wants of other owners. */
  readonly #wanted = new Map<string, number>();
  readonly #away = new Map<SiteId, number>();

  constructor(seed: number, plan: OwnersPlan, wrongs: Wrongs) {
    this.#seed = seed;
    this.#plan = plan;
    this.#draws = new Draws(`owners run ${seed}`);
    const world = this.#world;
    const ids = Array.from({ length: plan.n }, (_, i) => `s${i}`);
    const delayOf = (site: SiteId) => plan.delaysMs[ids.indexOf(site)] ?? 1;
    this.#network = new SimNetwork({
      world,
      draws: this.#draws.fork("network"),
      parentOf: () => null,
      quality: (a, b) => {
        const leastMs = delayOf(a) + delayOf(b);
        return { delayMs: [leastMs, 1.5 * leastMs], lossChance: plan.lossChance, bytesPerMs: Infinity };
      },
      noticeMs: [0, 60],
      lateChance: plan.lateChance,
      window: 64,
    });
    const areas = new Map(ids.map((id) => [id, this.#draws.pick(["x", "y", null])]));
    this.#sites = ids.map((id) =>
      new OwnerSite({
        id,
        sites: ids,
        settings: { ...NO_OWNERS, ...TIMES, f: plan.f, nearMs: plan.nearMs },
        areas,
        world,
        network: this.#network,
        draws: this.#draws.fork(id),
        commitMs: plan.commitMs,
        drift: this.#draws.pick([0, 0.01, -0.01]),
        thinkMs: plan.thinkMs,
        tuplesMax: plan.tuplesMax,
        tries: plan.tries,
        away: this.#away,
        wrongs,
        record: (event) => this.#told.push({ ...event, atMs: world.nowMs }),
      })
    );
  }

  async run(): Promise<OwnersRun> {
    const { plan, world } = { plan: this.#plan, world: this.#world };
    for (const site of this.#sites) void site.start();
    await world.run(world.nowMs + 500);
    this.#produce();
    this.#disturb();
    await world.run(world.nowMs + plan.safetyMs);
    this.#network.heal();
    for (const site of this.#sites) {
      site.isIdle = true;
      this.#start(site);
    }
    // A planned stop that has begun ends what is under way first: its site may go only now. What it has is its own until it
    // is back, and nothing may be judged without it.
    await this.#until("all live", () => this.#sites.every(({ isStaying }) => isStaying));
    await this.#until("stores end", () => this.#pending === 0);
    await this.#until(
      "tuples are at f + 1 sites, one of them responsible",
      () => this.#complaints().length === 0,
    );
    for (const text of this.#complaints().slice(0, 5)) this.#complain("owners", text);
    for (const site of this.#sites) site.wakeUser();
    await this.#until("nothing is left", () => this.#left().length === 0);
    for (const text of this.#left().slice(0, 5)) this.#complain("leftovers", text);
    for (const site of this.#sites) {
      for (const [name, count] of Object.entries(site.tuples?.status().counters ?? {})) {
        this.#probe(name, count);
      }
    }
    const history: History = { told: this.#told, acks: this.#acks };
    const violations = check(history, (name) => this.#probe(`excused ${name}`));
    this.#probe("acknowledged", this.#acks.length);
    return {
      seed: this.#seed,
      plan,
      violations: [...this.#atRest, ...violations],
      probes: this.#probes,
      history,
    };
  }

  #probe(name: string, by = 1): void {
    this.#probes[name] = (this.#probes[name] ?? 0) + by;
  }

  #complain(checker: string, message: string): void {
    this.#atRest.push({ checker, message, atMs: this.#world.nowMs });
  }

  async #until(what: string, done: () => boolean): Promise<void> {
    const untilMs = this.#world.nowMs + HEAL_MS_MAX;
    while (!done() && this.#world.nowMs < untilMs) await this.#world.run(this.#world.nowMs + POLL_MS);
    if (!done()) this.#complain("liveness", `it never came to this: ${what}`);
  }

  #produce(): void {
    const draws = this.#draws.fork("producers");
    const { tuples, safetyMs } = this.#plan;
    for (let i = 0; i < tuples; i++) {
      this.#world.after(draws.between(0, safetyMs), () => {
        const site = draws.pick(this.#sites);
        // Some arrive together.
        for (let many = draws.chance(0.3) ? 5 : 1; many > 0; many--) this.#order(site, draws);
      });
    }
  }

  /** A producer has something to store, perhaps more than once. */
  #order(site: OwnerSite, draws: Draws): void {
    const { f, fLeast, fLater, namedChance, safetyMs, dedupeMs } = this.#plan;
    const wanted = this.#world.nowMs > safetyMs / 2 ? fLater : draws.integer(fLeast, f);
    if (!draws.chance(namedChance)) return this.#store(site, wanted);
    const id = `named-${this.#names++}`;
    const rememberUntilMs = this.#world.nowMs + dedupeMs;
    this.#store(site, wanted, { id, rememberUntilMs });
    for (let again = draws.integer(0, 2); again > 0; again--) {
      // While it is sure to be remembered, whatever its site's clock says.
      this.#world.after(
        draws.between(0, 0.8 * dedupeMs),
        () => this.#store(site, wanted, { id, rememberUntilMs }),
      );
    }
  }

  #store(site: OwnerSite, f: number, named: Partial<NewTuple> = {}): void {
    const { tuples } = site, bytes = this.#plan.payloadBytes;
    if (tuples === null) return this.#probe("producer finds nobody");
    if (named.id !== undefined) {
      this.#told.push({ kind: "ordered", site: site.id, id: named.id, atMs: this.#world.nowMs });
    }
    this.#pending++;
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      this.#pending--;
    };
    this.#world.after(ANSWER_MS_MAX, () => {
      // A process that dies answers nobody.
      if (!isOver && site.tuples === tuples) {
        this.#complain("liveness", `a producer at ${site.id} is told nothing`);
      }
      over();
    });
    tuples.store({ payload: new Uint8Array(bytes), topic: "mail", f, note: "0", ...named }).then((id) => {
      over();
      this.#wanted.set(id, f);
      if (site.tuples !== tuples) return;
      this.#told.push({ kind: "stored", site: site.id, id, atMs: this.#world.nowMs });
      void this.#copies(id).then((copies) => {
        this.#acks.push({ id, atMs: this.#world.nowMs, copies, f });
      });
    }, (error) => {
      over();
      this.#probe(`refused ${error.code ?? error.message}`);
    });
  }

  /** On how many disks a tuple is; Infinity once it is gone somewhere: it was acted on meanwhile. */
  async #copies(id: string): Promise<number> {
    const rows = await Promise.all(this.#sites.map((site) => site.disk.get(packKey(["t", id]))));
    const states = rows.flatMap((row) => row?.value ? [decodeState(row.value)] : []);
    const isActedOn = this.#told.some((event) => event.kind === "acted" && event.id === id);
    return isActedOn || states.some(({ gone }) => gone) ? Infinity : states.length;
  }

  #disturb(): void {
    const draws = this.#draws.fork("faults");
    const { crashes, wipes, leaves, leavesAtReturn, partitions, safetyMs, slow } = this.#plan;
    const returns = this.#draws.fork("returns");
    for (let i = 0; i < crashes + wipes; i++) {
      const wipe = i >= crashes;
      const downMs = draws.pick([0, 20, 400, 3_000]);
      this.#world.after(draws.between(0, safetyMs), () => {
        const site = draws.pick(this.#sites);
        if (!site.isUp) return;
        this.#unsettled(site);
        if (!wipe) this.#ahead(site);
        site.crash(wipe);
        this.#probe(wipe ? "fault: wipe" : "fault: crash");
        this.#world.after(downMs * draws.between(0.5, 1.5), () => {
          this.#start(site);
          if (leavesAtReturn > 0 && returns.chance(leavesAtReturn)) {
            this.#world.after(returns.between(...AT_RETURN_MS), () => {
              this.#leave(returns, this.#successors(site.id));
            });
          }
        });
      });
    }
    for (let i = 0; i < leaves; i++) {
      const awayMs = draws.pick(AWAY_MS), errorMs = draws.pick(RETURN_MS);
      this.#world.after(draws.between(0, safetyMs), () => this.#leave(draws, this.#sites, awayMs, errorMs));
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
      });
    }
    if (slow) this.#world.after(safetyMs / 3, () => this.#network.slow(20));
  }

  /** Those that act on something of which a site is the last owner: it was that one's. */
  #successors(of: SiteId): readonly OwnerSite[] {
    return this.#sites.filter(({ id, tuples }) =>
      id !== of &&
      tuples?.debugEntries().some(({ owners, mark }) =>
          mark !== null && owners[0] === id && owners.at(-1) === of
        ) === true
    );
  }

  /** One of these stops as planned. */
  #leave(
    draws: Draws,
    sites: readonly OwnerSite[],
    awayMs = draws.pick(AWAY_MS),
    errorMs = draws.pick(RETURN_MS),
  ): void {
    if (sites.length === 0) return;
    const site = draws.pick(sites);
    if (!site.isUp || this.#away.has(site.id)) return;
    this.#probe(errorMs > 0 ? "fault: a return that is late" : "fault: a planned stop");
    const untilMs = this.#world.nowMs + awayMs;
    this.#away.set(site.id, untilMs);
    void site.leave(untilMs, () => {
      this.#unsettled(site);
      this.#world.at(untilMs + errorMs, () => this.#start(site));
    });
  }

  #start(site: OwnerSite): void {
    // One that is about to stop comes back by itself.
    if (!site.isUp) void site.start().then(() => this.#away.delete(site.id));
  }

  /** What a site has acted on, and others may not know to be gone as it dies: what is not on their disks goes with them. */
  #unsettled(site: OwnerSite): void {
    const holds = new Set<string>();
    for (const other of this.#sites) {
      for (const { id, mark } of other.tuples?.debugEntries() ?? []) if (mark !== null) holds.add(id);
      if (other !== site) { for (const id of other.heldOnDisk.keys()) holds.add(id); }
    }
    for (const id of site.actedNow) {
      if (!site.removedNow.has(id) || holds.has(id)) {
        this.#told.push({ kind: "died unsettled", site: site.id, id, atMs: this.#world.nowMs });
      }
    }
  }

  /** What the disk of a site that dies has as a later version than others have. */
  #ahead(site: OwnerSite): void {
    const versions = this.#sites.filter((other) => other !== site).map(
      (other): [SiteId, Map<string, number>] => {
        const held = other.tuples?.debugEntries().filter(({ mark }) => mark !== null) ??
          [...other.heldOnDisk].map(([id, { version }]) => ({ id, version }));
        return [other.id, new Map(held.map(({ id, version }) => [id, version]))];
      },
    );
    for (const [id, { version }] of site.heldOnDisk) {
      const behind = versions.filter(([, held]) => (held.get(id) ?? Infinity) < version).map(([other]) =>
        other
      );
      if (behind.length === 0) continue;
      this.#told.push({ kind: "died ahead", site: site.id, id, behind, atMs: this.#world.nowMs });
    }
  }

  #site(id: SiteId): OwnerSite | undefined {
    return this.#sites.find((site) => site.id === id);
  }

  /** What is not as it should be while all live and nobody acts. */
  #complaints(): string[] {
    const holders = new Map<string, Holder[]>();
    for (const { id: site, tuples } of this.#sites) {
      for (const { id, owners, mark } of tuples?.debugEntries() ?? []) {
        holders.set(id, [...holders.get(id) ?? [], { site, owners, mark }]);
      }
    }
    const tuples = [...holders].flatMap(([id, all]) => this.#apart(id, all).map((at) => [id, at] as const));
    return tuples.flatMap(([id, at]) => {
      if (at.every(({ owners, site, mark }) => mark === null && owners.join() === site)) return []; // remembered
      if (at.some(({ mark }) => mark === null)) return [`${id} is going`];
      const marks = new Set(at.map(({ mark }) => `${mark?.dueMs} ${mark?.note}`));
      if (marks.size > 1) return [`${id} has the marks ${[...marks].join(" and ")}`];
      const owners = new Set(at.map((one) => one.owners.join()));
      if (owners.size > 1) return [`${id} has the owners ${[...owners].join(" and ")}`];
      const [{ owners: list } = { owners: [] }] = at;
      const has = at.map(({ site }) => site).sort().join();
      const isFull = (site: SiteId) =>
        (this.#site(site)?.tuples?.status().tuples ?? 0) >= this.#plan.tuplesMax;
      if (list.some((site) => !at.some((one) => one.site === site) && isFull(site))) return [];
      if ([...list].sort().join() !== has) return [`${id} is owned by ${list.join()} and held by ${has}`];
      // Where there is no room others may be missing.
      if (list.length < (this.#wanted.get(id) ?? 0) + 1 && this.#plan.tuplesMax === Infinity) {
        return [`${id} has ${list.length} owners`];
      }
      return [];
    });
  }

  /** Sent again at a site that does not own it any more it is another tuple, of others (docs/faults.md). */
  #apart(id: string, all: readonly Holder[]): (readonly Holder[])[] {
    const of = (kind: "ordered" | "stored") =>
      this.#told.filter((event) => event.kind === kind && event.id === id);
    const againMs = of("ordered")[1]?.atMs ?? Infinity; // the first time may have been told to nobody
    const again = of("stored").filter(({ atMs }) => atMs > againMs);
    const anew = again.find(({ site }) => all.some((one) => one.site === site && one.owners[0] === site));
    const its = all.filter(({ owners }) => anew !== undefined && owners.includes(anew.site));
    const others = all.filter((one) => !its.includes(one));
    const areOthers = others.every(({ site, owners }) =>
      [site, ...owners].every((one) => !its.some((it) => it.site === one || it.owners.includes(one)))
    );
    return its.length === 0 || others.length === 0 || !areOthers ? [all] : [its, others];
  }

  #left(): string[] {
    return this.#sites.flatMap(({ id: site, tuples }) =>
      (tuples?.debugEntries() ?? []).map(({ id, mark, owners, version }) =>
        `${site} still has ${id}${mark === null ? " (gone)" : ""} of ${owners.join()}, version ${version}`
      )
    );
  }
}
