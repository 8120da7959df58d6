/**
 * One run of stateful sessions: sites, clients that ask until they are answered, and faults drawn from the seed.
 *
 * Stages: safety phase (crashes, at most f lost disks, partitions, slow links, clocks that jump, packets that come
 * again seconds later) → healing: every client is answered, every session tells what it believes → the checker.
 */
import { ANSWER_KEPT_MS, SITE_ANSWERS_BYTES_MAX } from "../../../functions/sessions/log/limits.ts";
import type { StatefulName } from "../../../functions/sessions/home/mod.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { World } from "../../sim/world.ts";
import { check, type Final, type History, type Violation } from "./check.ts";
import type { Heard, HostPlan } from "./host.ts";
import { keyOf, type Output } from "./program.ts";
import { type Answered, StatefulSite, type Wrongs } from "./stateful_site.ts";

export interface StatefulPlan {
  readonly n: number;
  readonly f: number;
  readonly sessions: number;
  /** Of those, with an id of their birth. */
  readonly born: number;
  readonly clients: number;
  readonly requests: number;
  readonly safetyMs: number;
  readonly crashes: number;
  readonly wipes: number;
  readonly partitions: number;
  readonly jumps: number;
  readonly slow: boolean;
  readonly lateChance: number;
  /** How often a site that is there is taken for gone, of the times that it is looked for. */
  readonly mistakes: number;
  readonly echoChance: number;
  readonly commitMs: readonly [number, number];
  readonly delaysMs: readonly number[];
  readonly host: HostPlan;
  /** How long all may take to be answered in the end. */
  readonly healMs: number;
  /** Bytes of answers that a site keeps: what is beyond goes, or nothing new is run. */
  readonly answersBytesMax: number;
  /** Of a state, what goes in one packet: little, and a base needs many. */
  readonly batchBytes: number;
  /**
   * Homes rest at the root only where nobody else can have them (functions/sessions/home/seats.ts), and in the end the root goes
   * away. Only of runs without faults: an owner that was lost is replaced through the root.
   */
  readonly seats?: boolean;
}

export interface StatefulRun {
  readonly seed: number;
  readonly plan: StatefulPlan;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
  readonly history: History;
  readonly events: number;
}

export interface StatefulOptions {
  readonly wrongs?: Wrongs;
  readonly change?: (plan: StatefulPlan) => StatefulPlan;
  /** Sees every point that a process passes, and says what happens to it there. */
  readonly passes?: (site: SiteId, point: string) => "goes on" | "crashes" | "loses its disk";
}

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const CLIENT_MS = 2_500;
const POLL_MS = 100;
const FINAL_ATTEMPTS = 5;
/** In so many runs clients come back after an answer's time, when sessions have run so many requests more. */
const COME_BACK_CHANCE = 0.1, LATE_REQUESTS = 5;
/** An answer is kept for a minute, by clocks that run a hundredth too fast. */
const ANSWER_MS_LEAST = 59_000;
/** Who was to rest or to move has done so, and sites that were begun know each other. */
const SETTLED_MS = 3_000;
/** A home that lives answers at once; one that was opened elsewhere does so when that was given up. */
const WITHOUT_MS_MAX = 6_000;
/** Longer than it takes to be suspected: others take over. */
const CRASHED_MS = 500;

/** Draws what a seed does. */
export function drawStatefulPlan(seed: number): StatefulPlan {
  const draws = new Draws(`stateful plan ${seed}`);
  const n = draws.integer(2, 5);
  const f = Math.min(n - 1, draws.pick([0, 1, 1, 1, 2]));
  const faults = (chance: number, most: number) => draws.chance(chance) ? draws.integer(1, most) : 0;
  const sessions = draws.integer(1, 5);
  const plan = {
    n,
    f,
    sessions,
    born: draws.chance(0.4) ? draws.integer(1, sessions) : 0,
    clients: draws.integer(1, 5),
    requests: draws.integer(3, 25),
    safetyMs: draws.integer(2_000, 10_000),
    crashes: faults(0.75, 6),
    wipes: draws.chance(0.4) ? draws.integer(0, f) : 0,
    partitions: faults(0.4, 4),
    jumps: faults(0.2, 3),
    slow: draws.chance(0.1),
    lateChance: draws.pick([0, 0.5]),
    echoChance: draws.pick([0, 0.02, 0.1]),
    mistakes: draws.pick([0, 0, 0.3]),
    commitMs: draws.pick([[0.1, 0.4], [1, 4], [5, 40]] as const),
    delaysMs: Array.from({ length: n }, () => draws.pick([0.2, 1, 5, 20])),
    host: {
      checkpointEvery: draws.pick([2, 5, 1_000]),
      restChance: draws.pick([0, 0.1, 0.3]),
      moveChance: draws.pick([0, 0.1, 0.3]),
      timerMs: draws.pick([0, 0, 1_000]),
    },
    batchBytes: new Draws(`stateful batches ${seed}`).pick([40, 40, 1 << 20]),
    answersBytesMax: SITE_ANSWERS_BYTES_MAX,
    healMs: 120_000,
  };
  if (!draws.chance(0.2)) return plan;
  // What nobody says to have received takes its room for a minute; in a small one others wait for it, in turn. Without
  // checkpoints each opening would bring all answers again, for a minute more.
  const host = { ...plan.host, checkpointEvery: Math.min(5, plan.host.checkpointEvery) };
  return { ...plan, host, answersBytesMax: 2_000, healMs: 600_000 };
}

/** Runs a seed. */
export function simulateStateful(seed: number, options: StatefulOptions = {}): Promise<StatefulRun> {
  const plan = (options.change ?? ((same) => same))(drawStatefulPlan(seed));
  return new Simulation(seed, plan, options).run();
}

class Simulation {
  readonly #seed: number;
  readonly #plan: StatefulPlan;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #network: SimNetwork;
  readonly #sites: readonly StatefulSite[];
  readonly #names: StatefulName[] = [];
  readonly #heard: (Heard & { readonly key: string })[] = [];
  readonly #answered = new Map<string, Set<string>>();
  readonly #finals: Final[] = [];
  /** When each was asked first. */
  readonly #askedMs = new Map<string, number>();
  readonly #atRest: Violation[] = [];
  readonly #probes: Record<string, number> = {};
  #open = 0;
  #isHealed = false;

  constructor(seed: number, plan: StatefulPlan, options: StatefulOptions) {
    this.#seed = seed;
    this.#plan = plan;
    this.#draws = new Draws(`stateful run ${seed}`);
    const world = this.#world;
    const ids = Array.from({ length: plan.n }, (_, i) => `s${i}`);
    const delayOf = (site: SiteId) => plan.delaysMs[ids.indexOf(site)] ?? 1;
    this.#network = new SimNetwork({
      world,
      draws: this.#draws.fork("network"),
      parentOf: () => null,
      quality: (a, b) => {
        const leastMs = delayOf(a) + delayOf(b);
        return { delayMs: [leastMs, 1.5 * leastMs], lossChance: 0, bytesPerMs: Infinity };
      },
      noticeMs: [0, 60],
      lateChance: plan.lateChance,
      window: 64,
    });
    this.#sites = ids.map((id, i) =>
      new StatefulSite({
        id,
        sites: ids,
        isRoot: i === 0,
        seats: plan.seats === true && options.wrongs?.restsAtTheRoot !== true,
        f: plan.f,
        times: TIMES,
        world,
        network: this.#network,
        draws: this.#draws.fork(id),
        commitMs: plan.commitMs,
        drift: this.#draws.pick([0, 0.01, -0.01]),
        host: plan.host,
        bounds: { answersBytesMax: plan.answersBytesMax, batchBytes: plan.batchBytes },
        wrongs: options.wrongs ?? {},
        echoChance: plan.echoChance,
        mistakes: plan.mistakes,
        // Each time a home is taken over, its answers take their room for a minute more: where that is small, and a home
        // is taken over again within the minute, for ever, nobody would be answered.
        isUnmistaken: () => this.#isHealed && plan.answersBytesMax < SITE_ANSWERS_BYTES_MAX,
        heard: (heard) => this.#heard.push({ ...heard, key: keyOf(heard.name) }),
        hasAnswer: (name, request) => this.#answered.get(keyOf(name))?.has(request) === true,
        complain: (text) => this.#atRest.push({ checker: "fault", message: text }),
        passes: (site, point) => {
          const fate = options.passes?.(site, point) ?? "goes on";
          if (fate !== "goes on") this.#crash(site, fate === "loses its disk", CRASHED_MS);
        },
      })
    );
    const peers = new Map(this.#sites.map((site) => [site.id, site]));
    for (const site of this.#sites) site.peers = peers;
  }

  async run(): Promise<StatefulRun> {
    const { world, plan } = { world: this.#world, plan: this.#plan };
    for (const site of this.#sites) void site.start();
    await world.run(world.nowMs + 500);
    await this.#name();
    this.#ask();
    this.#disturb();
    await world.run(world.nowMs + plan.safetyMs);
    this.#isHealed = true;
    this.#network.heal();
    for (const site of this.#sites) void site.start();
    await this.#until(() => this.#open === 0);
    if (this.#open > 0) this.#complain("liveness", `${this.#open} requests are not answered`);
    if (plan.seats === true) await this.#withoutTheRoot();
    await this.#comeBack();
    // Where all were answered before the faults ended, a site may be about to start.
    await this.#until(() => this.#sites.every(({ isUp }) => isUp));
    for (const { host } of this.#sites) if (host !== null) host.isCalm = true;
    await world.run(world.nowMs + 3_000);
    for (const name of this.#names) await this.#final(name);
    for (const site of this.#sites) this.#count(site);
    const history = { heard: this.#heard, answered: this.#answered, finals: this.#finals };
    const violations = [...this.#atRest, ...check(history)];
    this.#probe("heard", this.#heard.length);
    return { seed: this.#seed, plan, violations, probes: this.#probes, history, events: world.events };
  }

  #count(site: StatefulSite): void {
    const all = [site.counters, site.homes?.status().counters ?? {}, site.host?.probes ?? {}];
    for (const counters of all) {
      for (const [name, count] of Object.entries(counters)) this.#probe(name, count);
    }
  }

  #probe(name: string, by = 1): void {
    this.#probes[name] = (this.#probes[name] ?? 0) + by;
  }

  #complain(checker: string, message: string): void {
    this.#atRest.push({ checker, message });
  }

  async #until(done: () => boolean): Promise<void> {
    const untilMs = this.#world.nowMs + this.#plan.healMs;
    while (!done() && this.#world.nowMs < untilMs) await this.#world.run(this.#world.nowMs + POLL_MS);
  }

  /** Some are born, with ids that say where. */
  async #name(): Promise<void> {
    const { sessions, born } = this.#plan;
    for (let i = 0; i < sessions; i++) {
      const host = this.#draws.pick(this.#sites).host;
      let made: StatefulName | null = null;
      if (i < born && host !== null) {
        void host.create().then((name) => made = name);
        await this.#world.run(this.#world.nowMs + 1_000);
        if (made === null) this.#probe("not born");
      }
      this.#names.push(made ?? { app: "a", class: "C", id: `x${i}` });
    }
  }

  #ask(): void {
    const draws = this.#draws.fork("clients");
    const { clients, requests, safetyMs } = this.#plan;
    for (let client = 0; client < clients; client++) {
      for (let i = 0; i < requests; i++) {
        const name = draws.pick(this.#names);
        this.#open++;
        this.#world.after(draws.between(0, safetyMs), () => this.#request(draws, name, `c${client}.${i}`));
      }
    }
  }

  /** Until it is answered; each time at some site. */
  #request(
    draws: Draws,
    name: StatefulName,
    request: string,
    done: (output: Output) => void = () => {},
  ): void {
    const key = keyOf(name), askedMs = this.#askedMs.get(request) ?? this.#world.nowMs;
    this.#askedMs.set(request, askedMs);
    const answered = this.#answered.get(key) ?? new Set();
    this.#answered.set(key, answered);
    let isOver = false;
    const again = () => {
      if (isOver || answered.has(request)) return;
      isOver = true;
      this.#probe("asks again");
      this.#world.after(draws.between(10, 300), () => {
        if (!answered.has(request)) this.#request(draws, name, request, done);
      });
    };
    this.#world.after(CLIENT_MS, again);
    draws.pick(this.#sites).request(name, request, ({ ok, value }: Answered) => {
      // The answer to an attempt that it has given up is one all the same; a refusal is not.
      if (answered.has(request) || (isOver && !ok)) return;
      if (!ok) this.#probe(`told ${value}`);
      if (!ok && value !== "past") return again();
      this.#open--;
      // Who is told that the answer is not kept any more is told that it was run.
      answered.add(request);
      if (ok) done(JSON.parse(value));
      else this.#past(request, this.#world.nowMs - askedMs);
    });
  }

  /** What rests goes on while the root is away, at a site that lives. */
  async #withoutTheRoot(): Promise<void> {
    const [root, ...others] = this.#sites;
    // What is on its way to another site arrives, and rests there.
    await this.#world.run(this.#world.nowMs + SETTLED_MS);
    for (const { host } of this.#sites) host?.restAll();
    await this.#world.run(this.#world.nowMs + SETTLED_MS);
    root?.crash(false);
    for (const name of this.#names) {
      const request = `without the root ${keyOf(name)}`, key = keyOf(name);
      const untilMs = this.#world.nowMs + WITHOUT_MS_MAX;
      let isAnswered = false;
      const ask = (site: StatefulSite) =>
        site.request(name, request, ({ ok }) => {
          isAnswered ||= ok;
          if (ok) this.#answered.set(key, (this.#answered.get(key) ?? new Set()).add(request));
          else if (!isAnswered) this.#world.after(POLL_MS, () => isAnswered || ask(site));
        });
      for (const site of others) ask(site);
      while (!isAnswered && this.#world.nowMs < untilMs) {
        await this.#world.run(this.#world.nowMs + POLL_MS);
      }
      if (isAnswered) this.#probe("served without the root");
      else this.#complain("liveness", `${key} is served by nobody while the root is away`);
    }
    await root?.start();
    await this.#world.run(this.#world.nowMs + SETTLED_MS);
  }

  /** In some runs clients ask again, long after, what they have been answered. */
  async #comeBack(): Promise<void> {
    const draws = this.#draws.fork("those who come back");
    if (!draws.chance(COME_BACK_CHANCE) || this.#open > 0) return;
    // Of one that nobody has asked by now there is nothing to ask again for: what is asked below is not old.
    const old = this.#names.map((name) => ({ name, request: [...this.#answered.get(keyOf(name)) ?? []][0] }));
    await this.#world.run(this.#world.nowMs + ANSWER_KEPT_MS);
    // Checkpoints take along what is not too old.
    for (const [i, name] of this.#names.entries()) {
      for (let late = 0; late < LATE_REQUESTS; late++) {
        this.#open++;
        this.#request(draws, name, `late ${i}.${late}`);
      }
    }
    await this.#until(() => this.#open === 0);
    for (const { name, request } of old) if (request !== undefined) this.#repeat(draws, name, request);
    await this.#until(() => this.#open === 0);
    if (this.#open > 0) this.#complain("liveness", `${this.#open} who came back are not answered`);
  }

  /** What was answered is asked again, until there is an answer; it is held against the first one (check.ts). */
  #repeat(draws: Draws, name: StatefulName, request: string): void {
    let isOver = false;
    this.#open++;
    const ask = () => {
      if (isOver) return;
      this.#world.after(CLIENT_MS, ask);
      draws.pick(this.#sites).request(name, request, ({ ok, value }: Answered) => {
        if (isOver || (!ok && value !== "past")) return;
        isOver = true;
        this.#open--;
        this.#probe(ok ? "asked again long after" : "told past");
        if (!ok) this.#past(request, this.#world.nowMs - (this.#askedMs.get(request) ?? 0));
      });
    };
    ask();
  }

  #past(request: string, ageMs: number): void {
    const { jumps, answersBytesMax } = this.#plan;
    if (answersBytesMax < SITE_ANSWERS_BYTES_MAX) {
      return this.#probe("excused an answer that went for want of room");
    }
    if (jumps > 0) return this.#probe("excused an answer that is not kept any more, by a clock that was set");
    if (ageMs >= ANSWER_MS_LEAST) return this.#probe("excused an answer that is not kept any more");
    this.#complain("past", `${request} is past when it was asked ${Math.round(ageMs)} ms ago`);
  }

  /** What a session believes: asked until who runs it says so. */
  async #final(name: StatefulName): Promise<void> {
    for (let attempt = 0; attempt < FINAL_ATTEMPTS; attempt++) {
      const request = `final ${attempt} ${keyOf(name)}`;
      let output: Output | null = null;
      this.#open++;
      this.#request(this.#draws.fork(request), name, request, (made) => output = made);
      await this.#until(() => output !== null);
      const { n } = output ?? { n: 0 };
      const state = this.#sites.map(({ host }) => host?.state(name) ?? null)
        .find((one) => one?.inputs[n - 1]?.request === request);
      if (output === null) return this.#complain("liveness", `${keyOf(name)} can't be asked in the end`);
      const heard = this.#heard.length;
      if (state) return void this.#finals.push({ name: keyOf(name), inputs: state.inputs, heard });
      // It went to rest, or elsewhere, since.
    }
    this.#complain("liveness", `${keyOf(name)} is nowhere in the end`);
  }

  // ── Faults ──

  #crash(id: SiteId, wipe: boolean, downMs: number): void {
    const site = this.#sites.find((one) => one.id === id);
    if (site === undefined || !site.isUp || this.#isHealed) return;
    site.crash(wipe);
    this.#probe(wipe ? "fault: wipe" : "fault: crash");
    this.#world.after(downMs, () => void site.start());
  }

  #disturb(): void {
    const draws = this.#draws.fork("faults");
    const { crashes, wipes, partitions, jumps, safetyMs, slow } = this.#plan;
    for (let i = 0; i < crashes + wipes; i++) {
      const downMs = draws.pick([0, 20, 400, 3_000]) * draws.between(0.5, 1.5);
      const wipe = i >= crashes;
      this.#world.after(
        draws.between(0, safetyMs),
        () => this.#crash(draws.pick(this.#sites).id, wipe, downMs),
      );
    }
    for (let i = 0; i < partitions; i++) {
      const forMs = draws.pick([50, 500, 3_000]);
      this.#world.after(draws.between(0, safetyMs), () => this.#part(draws, forMs));
    }
    for (let i = 0; i < jumps; i++) {
      this.#world.after(
        draws.between(0, safetyMs),
        () => draws.pick(this.#sites).jump(draws.pick([300, 5_000, 60_000])),
      );
    }
    if (slow) this.#world.after(safetyMs / 3, () => this.#network.slow(20));
  }

  /** Two sides that don't hear each other; or some pairs, so that a third one hears both. */
  #part(draws: Draws, forMs: number): void {
    const isByPairs = draws.chance(0.5);
    const some = this.#sites.filter(() => draws.chance(0.4));
    for (const a of this.#sites) {
      for (const b of this.#sites) {
        const isCut = isByPairs ? a.id < b.id && draws.chance(0.4) : some.includes(a) && !some.includes(b);
        if (isCut) this.#network.partition(a.id, b.id, this.#world.nowMs + forMs);
      }
    }
    this.#probe("fault: partition");
  }
}
