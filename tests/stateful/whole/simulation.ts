/**
 * One run of everything that stateful sessions are made of: sites with homes, executors, standbys and gateways, clients
 * with both kinds of host side, callers that ask until they are answered, programs behind the sessions, and faults drawn
 * from the seed.
 *
 * Stages: safety phase → healing: everybody has what is theirs, and nothing is under way → the checker.
 */
import { decodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import type { StatefulName } from "../../../functions/homes/mod.ts";
import { decodeValue, encodeValue, useOneForm } from "../../../functions/value.ts";
import type { SiteId } from "../../../store/ports.ts";
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { World } from "../../sim/world.ts";
import { check, type Party, type Violation } from "./checker.ts";
import { type ClientPorts, Device, PlainClient } from "./device.ts";
import { Ledger } from "./ledger.ts";
import { OriginProgram, Server } from "./outside.ts";
import { drawWholePlan, type WholePlan } from "./plan.ts";
import { APP } from "./process.ts";
import type { Op } from "./program.ts";
import { Rows } from "./rows.ts";
import { Site } from "./site.ts";
import type { Surroundings, Wrongs } from "./surroundings.ts";
import { SurvivingLog } from "./surviving_log.ts";
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

interface Session {
  readonly name: StatefulName;
  readonly log: SurvivingLog;
  readonly devices: Device[];
  readonly plain: PlainClient[];
  readonly programs: OriginProgram[];
  readonly answered: Map<string, string[]>;
}

const CALLER_MS = 4_000, POLL_MS = 100, HEAL_MS = 120_000, QUIET_MS = 4_000, CRASHED_MS = 500;
const NOTICED_MS = 2_000, MOVE_DRAIN_MS = 400, MEND_MS = 300;

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
  readonly #sessions: Session[] = [];
  readonly #rows = new Rows();
  readonly #server = new Server();
  readonly #found: Violation[] = [];
  readonly #probes: Record<string, number> = {};
  readonly #wires = new Map<SiteId, Wire[]>();
  #open = 0;
  #isHealed = false;

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
      const lists = { devices: [], plain: [], programs: [], answered: new Map() };
      this.#sessions.push({ name, log: new SurvivingLog(), ...lists });
    }
  }

  #surroundings(sites: readonly SiteId[]): Surroundings {
    const { f, hasStandbys, idleMs, commitMs, echoChance, mistakes, originBreaks } = this.#plan;
    const { wrongs = {}, logs } = this.#options;
    const draws = this.#draws.fork("origins");
    return {
      ...{ sites, peers: this.#sites, f, hasStandbys, idleMs, commitMs, echoChance, mistakes, wrongs },
      ...{ world: this.#world, network: this.#network, rows: this.#rows, server: this.#server },
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
      originBreaks: () => this.#breaks("origin frame") || (!this.#isHealed && draws.chance(originBreaks)),
    };
  }

  #session(id: string): Session {
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
    if (fate !== "goes on") this.#crash(site, fate === "loses its disk", CRASHED_MS);
  }

  #breaks(point: string): boolean {
    return this.#options.passes?.(null, point) === "breaks" && !this.#isHealed;
  }

  // ── The run ──

  async run(): Promise<WholeRun> {
    const world = this.#world;
    for (const site of this.#sites.values()) void site.start();
    await world.run(world.nowMs + 300);
    this.#people();
    this.#disturb();
    await world.run(world.nowMs + this.#plan.safetyMs);
    await this.#heal();
    for (const site of this.#sites.values()) site.count();
    for (const { counters } of this.#sites.values()) {
      for (const [name, count] of Object.entries(counters)) this.#probe(name, count);
    }
    const seen: unknown[] = [];
    for (const session of this.#sessions) seen.push(this.#check(session));
    const violations = this.#found;
    const { events } = world;
    return {
      ...{ seed: this.#seed, plan: this.#plan, violations, probes: this.#probes, events },
      seen: JSON.stringify([seen, this.#probes]),
    };
  }

  async #heal(): Promise<void> {
    const world = this.#world;
    this.#isHealed = true;
    this.#network.heal();
    for (const site of this.#sites.values()) void site.start();
    const mend = () => {
      this.#mend();
      for (const site of this.#sites.values()) void site.start();
      world.after(MEND_MS, mend);
    };
    mend();
    const untilMs = world.nowMs + HEAL_MS;
    let quietMs = world.nowMs, before = "";
    while (world.nowMs < untilMs) {
      await world.run(world.nowMs + POLL_MS);
      const now = this.#standing();
      if (now !== before || this.#open > 0) quietMs = world.nowMs;
      before = now;
      if (world.nowMs - quietMs >= QUIET_MS && this.#isSettled) return;
    }
    if (this.#open > 0) this.#say("WC8", `${this.#open} requests are not answered`);
  }

  /** Everybody is where they want to be. */
  get #isSettled(): boolean {
    return this.#sessions.every(({ devices, programs }) =>
      devices.every((each) => each.isOver || (each.isOpen && each.acknowledged === each.sent.length)) &&
      programs.some(({ isOver }) => !isOver)
    );
  }

  /** Changes as long as anything is under way. */
  #standing(): string {
    return this.#sessions.map(({ log, devices, plain, programs }) =>
      [
        log.entries.length,
        log.epoch,
        ...[...devices, ...plain, ...programs].map(({ heard, sent }) => `${heard.length}/${sent.length}`),
      ].join()
    ).join(";");
  }

  #check({ name, log, devices, plain, programs, answered }: Session): unknown {
    for (const wrong of log.wrong) this.#say("log", wrong);
    const ledger = this.#ledger(name.id, log);
    if (ledger === null) return null;
    this.#probe("entries", log.entries.length);
    this.#probe("openings", log.openings);
    this.#probe("undone", ledger.undone.size);
    this.#probe("posted", ledger.posted.length);
    this.#probe("swapped", ledger.swapped.length);
    this.#probe("rejections", ledger.rejections);
    const parties = [...devices.map(deviceParty), ...plain.map(plainParty), ...programs.map(programParty)];
    for (const { heard } of parties) this.#probe("heard", heard.length);
    const mine = (what: string) => what.includes(`${name.id}!`);
    this.#found.push(...check({
      ...{ key: `${name.class}/${name.id}`, ledger, parties, answered },
      written: this.#rows.written.filter(({ value }) =>
        /^\d+:\d+:\d+:(put|swap) /.test(value) && mine(value)
      ),
      done: [...this.#server.done.values()].filter(({ what }) => mine(what)),
    }));
    return [parties, [...answered]];
  }

  #ledger(id: string, log: SurvivingLog): Ledger | null {
    try {
      return new Ledger(id, log.entries);
    } catch (error) {
      this.#say("log", `the log of ${id} can't be run: ${error}`);
      return null;
    }
  }

  // ── People ──

  /** What always throws has no end but where it is given up. */
  #ops(draws: Draws, { name }: Session): string {
    const { ops: all } = this.#plan;
    const ops = name.class === "whole" ? all : all.filter((op) => op !== "throw");
    return Array.from({ length: draws.integer(1, 3) }, () => draws.pick<Op>(ops)).join(" ");
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
          plan: () => this.#isHealed ? { ...this.#plan, breaks: 0, garbles: 0 } : this.#plan,
          sent: () => this.#breaks("device frame"),
        });
        this.#wires.set(id, [...(this.#wires.get(id) ?? []).filter(({ isBroken }) => !isBroken), wire]);
        return wire;
      },
    };
  }

  /** With a gateway its channels go, and whoever has one finds out in their time. */
  #died(id: SiteId): void {
    for (const wire of this.#wires.get(id) ?? []) {
      this.#world.after(this.#draws.between(0, NOTICED_MS), () => wire.break());
    }
    this.#wires.delete(id);
  }

  /** Until it is answered; each time at some site. */
  #request(draws: Draws, session: Session, request: string, what: string): void {
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
        if (!this.#isHealed) program.say(ops);
      });
    }
  }

  // ── Faults ──

  #opened({ id }: { readonly id: string }, epoch: number, at: number, pieces: readonly Uint8Array[]): void {
    const session = this.#session(id);
    session.log.opened(epoch, at, pieces);
    if (pieces.length > 1) this.#probe("followed");
    if (!this.#isHealed && this.#draws.chance(this.#plan.moveAtOnce)) {
      this.#world.after(this.#draws.between(0, 30), () => this.#move(session));
    }
  }

  #crash(id: SiteId, wipe: boolean, downMs: number): void {
    const site = this.#sites.get(id);
    if (site === undefined || this.#isHealed) return;
    site.crash(wipe);
    this.#probe(wipe ? "fault: wipe" : "fault: crash");
    this.#world.after(downMs, () => void site.start());
  }

  #move({ name }: Session): void {
    for (const site of this.#sites.values()) {
      const host = site.process?.host;
      if (this.#isHealed || host?.look(name)?.state !== "open") continue;
      const others = [...this.#sites.keys()].filter((id) => id !== site.id);
      host.move(name, this.#draws.pick(others), MOVE_DRAIN_MS).then(
        () => this.#probe("moved"),
        ({ code }) => this.#probe(`move: ${code}`),
      );
    }
  }

  /** What an operator does about sessions that stand still. */
  #mend(): void {
    for (const { name } of this.#sessions) {
      for (const { process } of this.#sites.values()) {
        if (process === null || process.host.look(name)?.state !== "parked") continue;
        this.#probe("mended");
        process.host.resume(name).catch(() => {});
      }
    }
  }

  #disturb(): void {
    const draws = this.#draws.fork("faults"), plan = this.#plan, world = this.#world;
    const sites = [...this.#sites.values()];
    const times = (count: number, what: () => void) => {
      for (let i = 0; i < count; i++) {
        world.after(draws.between(0, plan.safetyMs), () => this.#isHealed || what());
      }
    };
    const downMs = () => draws.pick([0, 20, 400, 2_000]) * draws.between(0.5, 1.5);
    const device = () => draws.pick(this.#sessions.flatMap(({ devices }) => devices));
    times(plan.crashes, () => this.#crash(draws.pick(sites).id, false, downMs()));
    times(plan.wipes, () => this.#crash(draws.pick(sites).id, true, downMs()));
    times(plan.stops, () => {
      this.#probe("fault: stop");
      void draws.pick(sites).stop();
    });
    times(plan.partitions, () => this.#part(draws, draws.pick([50, 500, 2_000])));
    times(plan.kills, () => this.#kill(draws));
    times(plan.stands, () => draws.pick(sites).standStill(draws.pick([300, 3_000, 20_000])));
    times(plan.sets, () => draws.pick(sites).set(draws.integer(-60_000, 60_000)));
    times(plan.moves, () => this.#move(draws.pick(this.#sessions)));
    times(plan.roams, () => device().roam());
    times(plan.cuts, () => device().cut());
    times(plan.originLeaves, () => draws.pick(this.#sessions).programs.at(-1)?.leave());
    times(8, () => this.#mend());
  }

  #kill(draws: Draws): void {
    const { process } = draws.pick([...this.#sites.values()]);
    if (process === null) return;
    this.#probe("fault: kill");
    draws.pick([process.isolates, process.isolates, process.followers]).lose(draws.chance(0.5));
  }

  /** Two sides that don't hear each other; or some pairs, so that a third one hears both. */
  #part(draws: Draws, forMs: number): void {
    const isByPairs = draws.chance(0.5), ids = [...this.#sites.keys()];
    const some = ids.filter(() => draws.chance(0.4));
    for (const a of ids) {
      for (const b of ids) {
        const isCut = isByPairs ? a < b && draws.chance(0.4) : some.includes(a) && !some.includes(b);
        if (isCut) this.#network.partition(a, b, this.#world.nowMs + forMs);
      }
    }
    this.#probe("fault: partition");
  }
}

function answerText(bytes: Uint8Array): string {
  const answer = decodeAnswer(bytes);
  if (answer.kind === "value") return `value ${decodeValue(answer.value)}`;
  return answer.kind === "error" ? `error ${answer.code} ${answer.message}` : answer.kind;
}

const deviceParty = (device: Device): Party => {
  const { name, peer, sent, heard, acknowledged, rejected, end, isClosing, isOver } = device;
  return {
    ...{ name, kind: "device", peer, sent, heard, acknowledged, rejected, isClosing, isLive: !isOver },
    end: end && {
      isRefused: end.kind === "refused",
      code: `${end.code}`,
      isRemote: end.kind === "bye" && end.isRemote,
    },
  };
};

/** Who does not know the id that it has is told it by the first thing that it hears. */
const greeted = (heard: readonly string[]): string | null =>
  / ?open (\S+)$/.exec(heard[0] ?? "")?.[1] ?? null;
const NOTHING = { acknowledged: 0, rejected: [], end: null, isClosing: false } as const;

const plainParty = ({ name, sent, heard, isConnected }: PlainClient): Party => ({
  ...NOTHING,
  ...{ name, kind: "plain", peer: greeted(heard), sent, heard, isLive: isConnected },
});

const programParty = ({ session, sent, heard, isOver }: OriginProgram): Party => ({
  ...NOTHING,
  ...{ name: `the origin of ${session}`, kind: "origin", peer: greeted(heard), sent, heard, isLive: !isOver },
});
