/**
 * One run of a stateful session whose clients hold its log: sites with the production code of homes, feeds and sealed
 * logs, clients that send and are told, callers that hold nothing, and faults drawn from the seed.
 *
 * Stages: safety phase (sites crash and lose their disks, are cut off from each other but not from clients; channels
 * break, clients roam) → healing: everything that was sent is in the log, everybody has been told all → the checker.
 */
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { World } from "../../sim/world.ts";
import { StatefulSite } from "../sim/stateful_site.ts";
import { check, type Violation } from "./check.ts";
import { Client, type ClientWrongs, type Lie } from "./client.ts";
import { channel } from "./frames.ts";
import type { Entry } from "./program.ts";
import { Door, type DoorWrongs } from "./session_at.ts";

export interface HostsPlan {
  readonly sites: number;
  readonly f: number;
  readonly clients: number;
  readonly messages: number;
  readonly requests: number;
  readonly safetyMs: number;
  readonly crashes: number;
  /** Of them, with the disk; the root keeps its own. */
  readonly wipes: number;
  readonly partitions: number;
  readonly breaks: number;
  readonly late: number;
  readonly checkpointEvery: number;
  readonly commitMs: readonly [number, number];
  /** What the last client makes of its log when it is asked for it. */
  readonly lie: Lie;
}

export interface HostsRun {
  readonly seed: number;
  readonly plan: HostsPlan;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
}

export interface HostsOptions {
  readonly wrongs?: ClientWrongs & DoorWrongs;
  readonly change?: (plan: HostsPlan) => HostsPlan;
}

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const NO_HOST = { checkpointEvery: Infinity, restChance: 0, moveChance: 0, timerMs: 0 };
const NAME = { app: "duel", class: "match", id: "one" };
const SECRET = new Uint8Array(32).fill(5);
const HEAL_MS = 60_000;
const LIES = ["nothing", "an older one", "a changed one", "another's", "one without its middle"] as const;

export function drawHostsPlan(seed: number): HostsPlan {
  const draws = new Draws(`hosts plan ${seed}`);
  const f = draws.pick([0, 0, 1]);
  const crashes = draws.integer(1, 5);
  const plan: HostsPlan = {
    sites: draws.integer(3, 4),
    f,
    clients: draws.integer(1, 3),
    messages: draws.integer(5, 60),
    requests: draws.pick([0, 3, 20]),
    safetyMs: draws.integer(2_000, 6_000),
    crashes,
    // With a client on record from the beginning f = 0 bears the loss of the disk, too.
    wipes: draws.chance(0.5) ? draws.integer(0, f === 0 ? crashes : 1) : 0,
    partitions: draws.pick([0, 0, 2, 5]),
    breaks: draws.pick([0, 2, 8]),
    late: draws.pick([0, 0.5]),
    checkpointEvery: draws.pick([4, 20, 1_000]),
    commitMs: draws.pick([[0.1, 0.4], [5, 30], [40, 120]] as const),
    lie: "none" as const,
  };
  if (!new Draws(`hosts lie ${seed}`).chance(0.3)) return plan;
  // One that holds back the end is believed where nobody else can know it: with the only disk lost.
  const lie = new Draws(`hosts lie of ${seed}`).pick(LIES);
  return { ...plan, lie, clients: Math.max(2, plan.clients), ...(plan.f === 0 ? { wipes: 0 } : {}) };
}

/** Runs a seed. */
export function simulateHosts(seed: number, options: HostsOptions = {}): Promise<HostsRun> {
  const plan = (options.change ?? ((same) => same))(drawHostsPlan(seed));
  return new Simulation(seed, plan, options.wrongs ?? {}).run();
}

class Simulation {
  readonly #seed: number;
  readonly #plan: HostsPlan;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #network: SimNetwork;
  readonly #sites: StatefulSite[] = [];
  readonly #doors = new Map<string, Door>();
  readonly #clients: Client[] = [];
  readonly #found: Violation[] = [];
  readonly #probes: Record<string, number> = {};
  readonly #made = new Map<string, { readonly before: string; readonly entry: Entry }>();
  readonly #given = new Map<string, { readonly sequence: number; readonly text: string }[]>();
  readonly #acknowledged = new Map<string, number>();
  readonly #answers = new Map<string, string>();
  #asked = 0;
  #isHealed = false;
  #isForced = false;

  constructor(seed: number, plan: HostsPlan, wrongs: ClientWrongs & DoorWrongs) {
    this.#seed = seed;
    this.#plan = plan;
    this.#draws = new Draws(`hosts run ${seed}`);
    const world = this.#world, draws = this.#draws;
    this.#network = new SimNetwork({
      world,
      draws: draws.fork("network"),
      parentOf: () => null,
      quality: () => ({ delayMs: [1, 8], lossChance: 0, bytesPerMs: Infinity }),
      noticeMs: [0, 40],
      lateChance: plan.late,
      window: 64,
    });
    const ids = Array.from({ length: plan.sites }, (_, i) => `s${i}`);
    for (const [i, id] of ids.entries()) this.#site(id, i, ids, wrongs);
    const peers = new Map(this.#sites.map((site) => [site.id, site]));
    for (const site of this.#sites) site.peers = peers;
    for (let i = 0; i < plan.clients; i++) this.#clients.push(this.#client(`c${i}`, wrongs));
  }

  #site(id: string, at: number, ids: readonly string[], wrongs: DoorWrongs): void {
    const { f, commitMs, checkpointEvery } = this.#plan, draws = this.#draws.fork(id);
    const complain = (message: string) => this.#complain("fault", `${id}: ${message}`);
    const door: Door = new Door({
      ...{
        site: id,
        name: NAME,
        world: this.#world,
        draws,
        secret: SECRET,
        wrongs,
        checkpointEvery,
        complain,
      },
      homes: () => site.homes,
      isForced: () => this.#isForced,
      lies: (host) => host === this.#liar,
      made: (before, digest, entry) => void this.#made.set(digest, { before, entry }),
      probe: (what) => this.#probe(what),
    });
    const site: StatefulSite = new StatefulSite({
      ...{
        id,
        sites: ids,
        isRoot: at === 0,
        f,
        times: TIMES,
        world: this.#world,
        network: this.#network,
        wrongs: {},
      },
      ...{
        draws,
        commitMs,
        drift: 0,
        host: NO_HOST,
        echoChance: 0,
        heard: () => {},
        complain,
        due: () => {},
      },
      hosts: door.hosts,
    });
    this.#doors.set(id, door);
    this.#sites.push(site);
  }

  #client(id: string, wrongs: ClientWrongs): Client {
    const draws = this.#draws.fork(id), world = this.#world;
    const given: { sequence: number; text: string }[] = [];
    this.#given.set(id, given);
    return new Client(id, {
      ...{ world, draws, wrongs },
      connect: (wanted) => {
        const site = this.#sites.find((one) => one.id === wanted) ?? draws.pick(this.#sites);
        if (!site.isUp) return null;
        const { host, home } = channel(world, draws, this.#plan.late);
        this.#doors.get(site.id)?.accept(home);
        return host;
      },
      given: (sequence, text) => void given.push({ sequence, text }),
      acknowledged: (count) => void this.#acknowledged.set(id, count),
      complain: (message) => id === this.#liar ? undefined : this.#complain("fault", message),
      told: (records) => id === this.#liar ? this.#lied(draws, records) : records,
    });
  }

  /** Whom nothing is promised. */
  get #liar(): string | null {
    return this.#plan.lie === "none" ? null : `c${this.#plan.clients - 1}`;
  }

  #lied(draws: Draws, records: readonly Uint8Array[]): readonly Uint8Array[] {
    this.#probe(`lie: ${this.#plan.lie}`);
    const at = draws.integer(0, Math.max(0, records.length - 1));
    switch (this.#plan.lie) {
      case "nothing":
        return [];
      case "an older one":
        return records.slice(0, at);
      case "a changed one":
        return records.map((record, i) =>
          i === at ? record.map((byte, j) => j === 5 ? byte ^ 1 : byte) : record
        );
      case "another's":
        return this.#clients[0]?.records ?? [];
      case "one without its middle":
        return records.length < 3 ? [] : records.toSpliced(1 + Math.min(at, records.length - 3), 1);
      case "none":
        return records;
    }
  }

  async run(): Promise<HostsRun> {
    const world = this.#world, { safetyMs } = this.#plan;
    for (const site of this.#sites) void site.start();
    await world.run(world.nowMs + 400);
    for (const client of this.#clients) client.connect();
    await world.run(world.nowMs + 400);
    this.#act();
    this.#disturb();
    await world.run(world.nowMs + safetyMs);
    this.#isHealed = true;
    this.#network.heal();
    for (const site of this.#sites) void site.start();
    const isDone = () =>
      this.#asked === this.#answers.size &&
      this.#clients.every(({ id, isDone }) => isDone || id === this.#liar);
    await world.run(world.nowMs + HEAL_MS, isDone);
    // A liar that was sent away does not come back, and may be waited for.
    this.#isForced = this.#liar !== null;
    if (this.#isForced) await world.run(world.nowMs + HEAL_MS, isDone);
    const last = isDone() ? await this.#last() : null;
    if (last === null) {
      const who = this.#clients.filter((one) => !one.isDone && one.id !== this.#liar).map((one) =>
        `${one.id} (${one.sent} sent)`
      );
      const open = this.#asked - this.#answers.size;
      this.#complain("liveness", `in the end ${open} requests and ${who.join(", ") || "nobody"} still wait`);
    } else {
      const { state } = last;
      const honest = this.#clients.filter(({ id }) => id !== this.#liar);
      const lacking = honest.filter((one) => (state.sent[one.id] ?? 0) !== one.received);
      for (const { id, received } of lacking) {
        this.#complain("liveness", `${id} was told ${received} of ${state.sent[id]}`);
      }
      for (const  of of[this.#given, this.#acknowledged]) of.delete(this.#liar ?? "");
      const history = { made: this.#made, given: this.#given, acknowledged: this.#acknowledged };
      this.#found.push(...check({ ...history, answers: this.#answered, last: state.digest }));
    }
    for (const site of this.#sites) {
      for (const [name, count] of Object.entries(site.homes?.status().counters ?? {})) {
        this.#probe(name, count);
      }
    }
    return { seed: this.#seed, plan: this.#plan, violations: this.#found, probes: this.#probes };
  }

  /** The one run that still is, when nothing more comes. */
  async #last() {
    const world = this.#world;
    for (let i = 0; i < 10; i++) {
      await world.run(world.nowMs + 1_000);
      const done = this.#asked;
      this.#request(`final ${i}`);
      await world.run(world.nowMs + 5_000, () => this.#answers.size > done);
      await world.run(world.nowMs + 500);
      const text = this.#answers.get(`final ${i}`);
      const run = [...this.#doors.values()].map((door) => door.run).find((one) =>
        one !== null && text === `${one.state.entries} ${one.state.digest}`
      );
      if (run) return run;
    }
    return null;
  }

  #act(): void {
    const { messages, requests, safetyMs } = this.#plan, draws = this.#draws.fork("acts");
    for (const client of this.#clients) {
      for (let i = 0; i < messages; i++) this.#world.after(draws.between(0, safetyMs), () => client.send());
    }
    for (let i = 0; i < requests; i++) {
      this.#world.after(draws.between(0, safetyMs), () => this.#request(`r${i}`));
    }
  }

  /** Asked at some site until it is answered, each time as another: what became of those before nobody knows. */
  #request(request: string): void {
    this.#asked++;
    const draws = this.#draws.fork(request);
    const ask = (attempt: number) => {
      if (this.#answers.has(request)) return;
      const site = draws.pick(this.#sites), door = this.#doors.get(site.id);
      this.#world.after(draws.between(400, 900), () => ask(attempt + 1));
      if (!site.isUp || door === undefined) return;
      const id = attempt === 0 ? request : `${request}/${attempt}`;
      door.request(id).then((text) => {
        if (!site.isUp || this.#answers.has(request)) return;
        this.#answers.set(request, text);
        this.#answered.set(id, text);
      }, () => {});
    };
    ask(0);
  }

  readonly #answered = new Map<string, string>();

  #disturb(): void {
    const { crashes, wipes, partitions, breaks, safetyMs } = this.#plan, draws = this.#draws.fork("faults");
    const at = (run: () => void) => this.#world.after(draws.between(0, safetyMs), run);
    for (let i = 0; i < crashes; i++) at(() => this.#crash(draws, i < wipes));
    for (let i = 0; i < partitions; i++) at(() => this.#part(draws));
    for (let i = 0; i < breaks; i++) {
      at(() => draws.chance(0.5) ? draws.pick(this.#clients).drop() : draws.pick(this.#clients).roam());
    }
  }

  /** Mostly the home: the others lose nothing. */
  #crash(draws: Draws, wipe: boolean): void {
    const home = this.#sites.find(({ id }) => this.#doors.get(id)?.run !== null);
    const site = home !== undefined && draws.chance(0.8) ? home : draws.pick(this.#sites);
    if (!site.isUp || this.#isHealed) return;
    // The disk may go where clients on record have all that anybody was told.
    const onRecord = this.#clients.some(({ id }) =>
      this.#doors.get(site.id)?.run?.home.hosts.isAhead(id) === true
    );
    const isWiped = wipe && (this.#plan.f > 0 || (site === home && onRecord));
    this.#doors.get(site.id)?.crash();
    site.crash(isWiped);
    this.#probe(isWiped ? "fault: wipe" : "fault: crash");
    this.#world.after(draws.pick([0, 50, 600, 2_500]) * draws.between(0.5, 1.5), () => void site.start());
  }

  /** One site hears no other, and clients hear it. */
  #part(draws: Draws): void {
    const one = draws.pick(this.#sites), untilMs = this.#world.nowMs + draws.pick([100, 800, 2_500]);
    for (const other of this.#sites) if (other !== one) this.#network.partition(one.id, other.id, untilMs);
    this.#probe("fault: partition");
  }

  #probe(name: string, by = 1): void {
    this.#probes[name] = (this.#probes[name] ?? 0) + by;
  }

  #complain(checker: Violation["checker"], message: string): void {
    this.#found.push({ checker, message });
  }
}
