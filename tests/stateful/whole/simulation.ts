/**
 * One run of everything that stateful sessions are made of: sites with homes, executors, standbys and gateways, clients
 * with both kinds of host side, callers that ask until they are answered, programs behind the sessions, and faults drawn
 * from the seed.
 *
 * Stages: safety phase → healing: everybody has what is theirs, and nothing is under way → somebody asks each session
 * once more → the checker.
 */
import { decodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import { decodeValue, encodeValue, useOneForm } from "../../../functions/value.ts";
import type { SiteId } from "../../../store/ports.ts";
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { World } from "../../sim/world.ts";
import { checkCalls, type Violation } from "./checker.ts";
import { type ClientPorts, Device, PlainClient } from "./device.ts";
import { Faults } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import { OriginProgram, Server } from "./outside.ts";
import { drawWholePlan, type WholePlan } from "./plan.ts";
import { APP, Deployed } from "./deployed.ts";
import type { Op } from "./program.ts";
import { Rows } from "./rows.ts";
import { type Judged, SimSession } from "./session.ts";
import { Site } from "./site.ts";
import type { Surroundings, Wrongs } from "./surroundings.ts";
import { Wire, type WireParts } from "./wire.ts";

// As isolates of stateful sessions do: V8's bytes differ from run to run.
useOneForm();

/** What happens at a point that is passed. */
export type Fate = "goes on" | "crashes" | "loses its disk" | "breaks";

export interface WholeOptions {
  readonly wrongs?: Wrongs;
  readonly meddle?: WireParts["meddle"];
  readonly change?: (plan: WholePlan) => WholePlan;
  /** Sees every point that a process passes, and each frame of a channel (`site` null), and says what happens there. */
  readonly passes?: (site: SiteId | null, point: string) => Fate;
  readonly logs?: (text: string) => void;
}

export interface WholeRun {
  readonly seed: number;
  readonly plan: WholePlan;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
  readonly events: number;
  /** All that was heard and answered, for who compares runs. */
  readonly seen: string;
}

const CALLER_MS = 4_000, POLL_MS = 100, HEAL_MS = 120_000, QUIET_MS = 2_500, CRASHED_MS = 500;
const NOTICED_MS = 2_000, MEND_MS = 300;

/** Runs a seed. */
export function simulateWhole(seed: number, options: WholeOptions = {}): Promise<WholeRun> {
  const plan = (options.change ?? ((same) => same))(drawWholePlan(seed));
  return new Simulation(seed, plan, options).run();
}

class Simulation {
  readonly #seed: number;
  readonly #plan: WholePlan;
  readonly #options: WholeOptions;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #network: SimNetwork;
  readonly #sites = new Map<SiteId, Site>();
  readonly #sessions: SimSession[] = [];
  readonly #faults: Faults;
  readonly #rows = new Rows();
  readonly #server = new Server();
  readonly #deployed = new Deployed();
  readonly #found: Violation[] = [];
  readonly #probes: Record<string, number> = {};
  readonly #wires = new Map<SiteId, Wire[]>();
  #open = 0;

  constructor(seed: number, plan: WholePlan, options: WholeOptions) {
    this.#seed = seed;
    this.#plan = plan;
    this.#options = options;
    this.#draws = new Draws(`whole run ${seed}`);
    const world = this.#world;
    const ids = plan.delaysMs.slice(0, plan.n).map((_, i) => `s${i}`);
    const delayOf = (site: SiteId) => plan.delaysMs[ids.indexOf(site)] ?? 1;
    this.#network = new SimNetwork({
      ...{ world, draws: this.#draws.fork("network"), parentOf: () => null, window: 64, noticeMs: [0, 60] },
      quality: (a, b) => {
        const leastMs = delayOf(a) + delayOf(b);
        return { delayMs: [leastMs, 1.5 * leastMs], lossChance: 0, bytesPerMs: Infinity };
      },
      lateChance: plan.lateChance,
    });
    const around = this.#surroundings(ids);
    for (const id of ids) this.#sites.set(id, new Site(id, around, this.#draws.fork(id)));
    for (const [i, className] of plan.classes.entries()) {
      const name = { app: APP, class: className, id: `x${i}` };
      this.#sessions.push(new SimSession(name));
    }
    this.#faults = new Faults({
      ...{ world, network: this.#network, draws: this.#draws.fork("faults"), plan },
      ...{ sites: this.#sites, sessions: this.#sessions, deployed: this.#deployed },
      probe: (name) => this.#probe(name),
      complain: (text) => this.#say("fault", text),
    });
  }

  #surroundings(sites: readonly SiteId[]): Surroundings {
    const { f, hasStandbys, isAhead, idleMs, commitMs, echoChance, mistakes, originBreaks } = this.#plan;
    const { wrongs = {}, logs } = this.#options;
    const draws = this.#draws.fork("origins");
    return {
      ...{ sites, peers: this.#sites, f, hasStandbys, idleMs, commitMs, echoChance, mistakes, wrongs },
      isAhead,
      ...{
        world: this.#world,
        network: this.#network,
        rows: this.#rows,
        server: this.#server,
        deployed: this.#deployed,
      },
      ...{ numbers: { next: 0 }, ...(logs === undefined ? {} : { logs }) },
      tap: {
        opened: (of, epoch, at, pieces) => this.#opened(of, epoch, at, pieces),
        committed: ({ id }, epoch, { first, count, entries }) =>
          this.#session(id).log.committed(epoch, first, count, entries),
      },
      program: (at, listener) => {
        const id = at.slice(at.indexOf("/") + 1);
        const { programs } = this.#session(id);
        const program = new OriginProgram(`${id}!o${programs.length}`, at, listener);
        programs.push(program);
        this.#converse(program, draws);
        return program;
      },
      died: (site) => this.#died(site),
      complain: (text) => this.#say("fault", text),
      probe: (name) => this.#probe(name),
      passes: (site, point) => this.#passed(site, point),
      originBreaks: () =>
        this.#breaks("origin frame") || (!this.#faults.isOver && draws.chance(originBreaks)),
    };
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
    if (fate !== "goes on") this.#faults.crash(site, fate === "loses its disk", CRASHED_MS);
  }

  #breaks(point: string): boolean {
    return this.#options.passes?.(null, point) === "breaks" && !this.#faults.isOver;
  }

  // ── The run ──

  async run(): Promise<WholeRun> {
    const world = this.#world;
    for (const site of this.#sites.values()) void site.start();
    await world.run(world.nowMs + 300);
    this.#people();
    this.#faults.begin();
    await world.run(world.nowMs + this.#plan.safetyMs);
    await this.#heal();
    for (const site of this.#sites.values()) site.count();
    for (const { counters } of this.#sites.values()) {
      for (const [name, count] of Object.entries(counters)) this.#probe(name, count);
    }
    const seen: unknown[] = [];
    const ledgers: Ledger[] = [];
    for (const session of this.#sessions) seen.push(this.#judge(session, ledgers));
    this.#found.push(...checkCalls(ledgers));
    const violations = this.#found;
    const { events } = world;
    return {
      ...{ seed: this.#seed, plan: this.#plan, violations, probes: this.#probes, events },
      seen: JSON.stringify([seen, this.#probes]),
    };
  }

  async #heal(): Promise<void> {
    const world = this.#world;
    this.#faults.end();
    for (const site of this.#sites.values()) void site.start();
    const mend = () => {
      this.#faults.mend();
      for (const site of this.#sites.values()) void site.start();
      world.after(MEND_MS, mend);
    };
    mend();
    await this.#settled();
    // Timers are called whether or not anybody asks; what a home had committed and not let out when it died leaves when
    // somebody does.
    for (const session of this.#sessions) {
      const { violations } = this.#judged(session);
      this.#found.push(...violations.filter(({ message }) => message.endsWith("was never called")));
    }
    for (const session of this.#sessions) {
      const last = `${session.name.id}!last`;
      this.#open++;
      this.#request(this.#draws.fork(last), session, last, `${last} quiet`);
    }
    await this.#settled();
    if (this.#open > 0) this.#say("WC8", `${this.#open} requests are not answered`);
  }

  async #settled(): Promise<void> {
    const world = this.#world;
    const untilMs = world.nowMs + HEAL_MS + this.#faults.aheadMsMax;
    let quietMs = world.nowMs, before = "";
    while (world.nowMs < untilMs) {
      await world.run(world.nowMs + POLL_MS);
      const now = this.#sessions.map(({ standing }) => standing).join(";");
      if (now !== before || this.#open > 0) quietMs = world.nowMs;
      before = now;
      if (world.nowMs - quietMs >= QUIET_MS && this.#isDone) return;
    }
  }

  /** Everybody has what is theirs. A handler that is tried again, or an origin that is, may take some seconds. */
  get #isDone(): boolean {
    const isWhole = (session: SimSession) =>
      this.#judged(session).violations.every(({ checker }) => checker !== "WC8");
    return this.#sessions.every((session) => session.isSettled && isWhole(session));
  }

  #judged(session: SimSession): Judged {
    const kept = [...this.#sites.values()].map(({ homes }) => homes?.debugLog(session.name)?.last ?? 0);
    return session.judge(this.#rows, this.#server, Math.max(...kept));
  }

  #judge(session: SimSession, ledgers: Ledger[]): unknown {
    const { violations, ledger, parties } = this.#judged(session);
    if (ledger !== null) ledgers.push(ledger);
    this.#probe("called", ledger?.called.length);
    this.#found.push(...violations);
    const { log, answered } = session;
    this.#probe("entries", log.entries.length);
    this.#probe("openings", log.openings);
    this.#probe("undone", ledger?.undone.size);
    this.#probe("posted", ledger?.posted.length);
    this.#probe("swapped", ledger?.swapped.length);
    for (const { heard } of parties) this.#probe("heard", heard.length);
    return [parties, [...answered]];
  }

  // ── People ──

  /** What always throws has no end but where it is given up. */
  #ops(draws: Draws, { name }: SimSession): string {
    const { ops: all } = this.#plan;
    const ops = name.class === "whole" ? all : all.filter((op) => op !== "throw");
    const words = Array.from({ length: draws.integer(1, 3) }, () => draws.pick<Op>(ops));
    // None is called by one that it calls.
    const other = this.#sessions[this.#sessions.findIndex((one) => one.name === name) + 1]?.name;
    const called = other === undefined ? "quiet" : `call:${other.class}/${other.id}`;
    return words.map((op) => op === "call" ? called : op).join(" ");
  }

  #people(): void {
    const { devices, plain, callers, messages, requests, safetyMs, deaths, closes } = this.#plan;
    const world = this.#world;
    for (const session of this.#sessions) {
      const { id } = session.name;
      const draws = this.#draws.fork(`people of ${id}`);
      const within = () => draws.between(0, safetyMs);
      for (let i = 0; i < devices; i++) {
        const device = new Device(`${id}!d${i}`, session.name, this.#clientPorts(draws.fork(`${i}`)));
        session.devices.push(device);
        world.after(draws.between(0, 300), () => device.start());
        for (let k = draws.integer(0, messages); k > 0; k--) {
          const ops = this.#ops(draws, session);
          world.after(within(), () => device.send(ops));
        }
        if (draws.chance(deaths)) world.after(within(), () => device.die());
        else if (draws.chance(closes)) world.after(within(), () => device.close());
      }
      for (let i = 0; i < plain; i++) {
        const client = new PlainClient(
          `${id}!w${i}`,
          session.name,
          this.#clientPorts(draws.fork(`plain ${i}`)),
        );
        session.plain.push(client);
        world.after(draws.between(0, 300), () => client.start());
        for (let k = draws.integer(0, messages); k > 0; k--) {
          const ops = this.#ops(draws, session);
          world.after(within(), () => client.send(ops));
        }
      }
      for (let i = 0; i < callers * requests; i++) {
        const request = `${id}!r${i}`, what = `${request} ${this.#ops(draws, session)}`;
        this.#open++;
        world.after(within(), () => this.#request(draws, session, request, what));
      }
    }
  }

  #clientPorts(draws: Draws): ClientPorts {
    const probe = (name: string) => this.#probe(name);
    return {
      ...{ world: this.#world, draws, probe },
      site: () => draws.pick([...this.#sites.values()]),
      wire: ({ id }) => {
        const wire = new Wire({
          ...{ world: this.#world, draws, meddle: this.#options.meddle ?? ((frame) => frame) },
          plan: () => this.#faults.isOver ? { ...this.#plan, breaks: 0, garbles: 0 } : this.#plan,
          sent: () => this.#breaks("device frame"),
        });
        this.#wires.set(id, [...(this.#wires.get(id) ?? []).filter(({ isBroken }) => !isBroken), wire]);
        return wire;
      },
    };
  }

  /** Until it is answered; each time at some site. */
  #request(draws: Draws, session: SimSession, request: string, what: string): void {
    let isOver = false;
    const again = () => {
      if (isOver) return;
      isOver = true;
      this.#probe("asked again");
      this.#world.after(draws.between(10, 300), () => this.#request(draws, session, request, what));
    };
    this.#world.after(CALLER_MS, again);
    const { process } = draws.pick([...this.#sites.values()]);
    if (process === null) return again();
    const call = encodeCall({ kind: "rpc", method: "run", args: encodeValue([what]) });
    process.router.call({ address: session.name, call, token: null, once: request }).then(({ answer }) => {
      // What arrives after all was heard, too.
      const heard = session.answered.get(request) ?? [];
      session.answered.set(request, [...heard, answerText(answer)]);
      if (heard.length === 0) this.#open--;
      isOver = true;
    }, ({ code }) => {
      this.#probe(`told ${code}`);
      again();
    });
  }

  /** What a program behind a session says. */
  #converse(program: OriginProgram, draws: Draws): void {
    const session = this.#session(program.session.slice(program.session.indexOf("/") + 1));
    const { messages, safetyMs } = this.#plan;
    for (let k = draws.integer(0, messages); k > 0; k--) {
      const ops = this.#ops(draws, session);
      this.#world.after(draws.between(0, safetyMs), () => {
        if (!this.#faults.isOver) program.say(ops);
      });
    }
  }

  // ── Faults ──

  #opened({ id }: { readonly id: string }, epoch: number, at: number, pieces: readonly Uint8Array[]): void {
    const session = this.#session(id);
    session.log.opened(epoch, at, pieces);
    if (pieces.length > 1) this.#probe("followed");
    if (!this.#faults.isOver && this.#draws.chance(this.#plan.moveAtOnce)) {
      this.#world.after(this.#draws.between(0, 30), () => this.#faults.move(session));
    }
  }

  /** With a gateway its channels go, and whoever has one finds out in their time. */
  #died(id: SiteId): void {
    for (const wire of this.#wires.get(id) ?? []) {
      this.#world.after(this.#draws.between(0, NOTICED_MS), () => wire.break());
    }
    this.#wires.delete(id);
  }
}

function answerText(bytes: Uint8Array): string {
  const answer = decodeAnswer(bytes);
  if (answer.kind === "value") return `value ${decodeValue(answer.value)}`;
  return answer.kind === "error" ? `error ${answer.code} ${answer.message}` : answer.kind;
}
