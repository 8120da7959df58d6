/**
 * One run of a stateful session whose clients hold its log: sites with the production code that serves it, from the
 * frames to the disks; clients with the host side of the client library; callers and clients that hold nothing; and
 * faults drawn from the seed.
 *
 * Stages: safety phase (sites crash and lose their disks, are cut off from each other but not from clients; isolates are
 * lost, the session rests and moves; channels break, clients roam, leave, stay away, begin again) → healing: everything
 * that was sent is in the log, everybody has been told all → the checker.
 */
import type { HostEnd } from "../../../functions/sessions/attach/mod.ts";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import { SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { START_MS, World } from "../../sim/world.ts";
import { StatefulSite } from "../sim/stateful_site.ts";
import { Line } from "./channel.ts";
import { check, type Violation } from "./check.ts";
import { Client, type ClientWrongs } from "./client.ts";
import { Ledger } from "./ledger.ts";
import { Faults, type Now, type Place } from "./faults.ts";
import { drawHostsPlan, type HostsPlan } from "./plan.ts";
import { NAME, SHARED, SiteProcess, type SiteWrongs, type Surroundings } from "./session_at.ts";
import { Unsure } from "./unsure.ts";

export interface HostsRun {
  readonly seed: number;
  readonly plan: HostsPlan;
  readonly violations: readonly Violation[];
  readonly probes: Readonly<Record<string, number>>;
}

export interface HostsOptions {
  readonly wrongs?: ClientWrongs & SiteWrongs;
  readonly change?: (plan: HostsPlan) => HostsPlan;
  readonly log?: (text: string) => void;
}

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const NO_HOST = { checkpointEvery: Infinity, restChance: 0, moveChance: 0, timerMs: 0 };
export const SECRET = new Uint8Array(32).fill(5);
const HEAL_MS = 90_000;

/** Runs a seed. */
export function simulateHosts(seed: number, options: HostsOptions = {}): Promise<HostsRun> {
  const plan = (options.change ?? ((same) => same))(drawHostsPlan(seed));
  return new Simulation(seed, plan, options).run();
}

class Simulation {
  readonly #seed: number;
  readonly #plan: HostsPlan;
  readonly #wrongs: ClientWrongs & SiteWrongs;
  readonly #log: (text: string) => void;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #network: SimNetwork;
  readonly #places: Place[] = [];
  readonly #clients: Client[] = [];
  readonly #found: Violation[] = [];
  readonly #ledger = new Ledger(this.#found);
  readonly #probes: Record<string, number> = {};
  readonly #around: Surroundings;
  readonly #hostLines = new WeakSet<Line>();
  readonly #given = new Map<string, { readonly sequence: number; readonly text: string }[]>();
  readonly #acknowledged = new Map<string, number>();
  readonly #rejected = new Map<string, number[]>();
  readonly #answers = new Map<string, string>();
  readonly #unsure = new Unsure();
  /** Where logs ended that were opened without any disk: what only disks knew may be otherwise (HO8). */
  readonly #forks = new Set<number>();
  /** Where logs ended that only hosts which lie have given: with one disk, that can't be asked, they are believed (HO7). */
  readonly #deceptions = new Set<number>();
  #asked = 0;
  /** Requests whose answers are not kept any more. */
  readonly #past = new Set<string>();
  #peers = 0;
  readonly #now: Now;

  constructor(seed: number, plan: HostsPlan, { wrongs = {}, log = () => {} }: HostsOptions) {
    this.#seed = seed;
    this.#plan = plan;
    this.#now = { version: SHARED, f: plan.f, isForced: false, isHealed: false };
    this.#wrongs = wrongs;
    this.#log = (text) => log(`${this.#world.nowMs.toFixed(1)} ${text}`);
    this.#draws = new Draws(`hosts run ${seed}`);
    const world = this.#world, draws = this.#draws;
    this.#network = new SimNetwork({
      ...{ world, draws: draws.fork("network"), lateChance: plan.late, window: 64, noticeMs: [0, 40] },
      parentOf: () => null,
      quality: () => ({ delayMs: [1, 8], lossChance: 0, bytesPerMs: Infinity }),
    });
    this.#around = {
      ...{ secret: SECRET, wrongs, ledger: this.#ledger, followers: new Set() },
      ...{ idleMs: plan.idleMs, idleCommits: plan.idleCommits, stateBytes: plan.stateBytes },
      version: () => this.#now.version,
      isForced: () => this.#now.isForced,
      leftBehind: (peers, isForced) => this.#leftBehind(peers, isForced),
      newPeer: () => `p${++this.#peers}`,
      isLiar: (peer) => {
        const one = this.#clients.find((client) => client.peer === peer);
        // Who begins again with what it had long ago holds back the end, too.
        return one !== undefined &&
          (one.id === this.#liar || (plan.relapses > 0 && one === this.#clients.at(-1)));
      },
      believed: (entries) => {
        this.#probe("a liar is believed");
        this.#deceptions.add(entries);
      },
      withoutDisks: (entries) => {
        this.#probe("opened without any disk");
        this.#forks.add(entries);
      },
      isHost: (line) => this.#hostLines.has(line),
      probe: (what) => this.#probe(what),
    };
    const ids = Array.from({ length: plan.sites }, (_, i) => `s${i}`);
    for (const id of ids) this.#place(id, ids);
    const peers = new Map(this.#places.map(({ site }) => [site.id, site]));
    for (const { site } of this.#places) site.peers = peers;
    for (let i = 0; i < plan.clients; i++) this.#clients.push(this.#client(i));
  }

  #place(id: string, ids: readonly string[]): void {
    const { commitMs } = this.#plan, isRoot = id === ids[0], now = this.#now;
    const site = new StatefulSite({
      ...{ id, sites: ids, isRoot, times: TIMES, world: this.#world, network: this.#network },
      get f() {
        return now.f;
      },
      ...{ draws: this.#draws.fork(id), commitMs, drift: 0, host: NO_HOST, echoChance: 0, heard: () => {} },
      complain: (message) => this.#ledger.complain("fault", `${id}: ${message}`),
      due: (_, name) => place.process?.host.wake(name),
      onOver: (...over) => place.process?.host.homeOver(...over),
      wrongs: {
        arbiterStorage: (storage) => ({
          ...storage,
          commit: async (commit) => {
            await storage.commit(commit);
            this.#ledger.row = (await site.homes?.rows({ limit: 1 }))?.[0] ?? this.#ledger.row;
          },
        }),
      },
      hosts: {
        ask: async (...asked) =>
          await place.process?.hosts.ask(...asked) ?? await new Promise<never>(() => {}),
      },
    });
    const place: Place = { site, life: 0, process: null, jumpedMs: 0 };
    this.#places.push(place);
  }

  async #start(place: Place): Promise<void> {
    const { site } = place;
    if (site.isUp) return;
    const life = ++place.life, world = this.#world;
    await site.start();
    const { homes } = site;
    if (life !== place.life || homes === null) return;
    // The arbiter's last row may have come to its disk as it died.
    if (site === this.#places[0]?.site) {
      void homes.rows({ limit: 1 }).then(([row]) => this.#ledger.row = row ?? this.#ledger.row);
    }
    const isAlive = () => life === place.life;
    place.process = new SiteProcess({
      ...{ site: site.id, homes, isAlive, around: this.#around },
      draws: this.#draws.fork(`${site.id} ${life}`),
      wallMs: () => START_MS + Math.floor(world.nowMs) + place.jumpedMs,
      // As its homes have it.
      clock: {
        nowMs: () => START_MS + Math.floor(world.nowMs),
        after: (ms, run) => world.after(ms, () => isAlive() ? run() : undefined),
      },
    });
  }

  #client(at: number): Client {
    const { bytes, plain, late, slowMs, clients } = this.#plan;
    const id = `c${at}`, world = this.#world, draws = this.#draws.fork(id);
    const isLiar = id === this.#liar;
    return new Client(id, {
      ...{ world, draws, wrongs: this.#wrongs, bytes, secret: SECRET, holdsLog: at >= plain },
      connect: (client, wanted) => {
        const place = this.#places.find(({ site }) => site.id === wanted) ?? draws.pick(this.#places);
        if (place.process === null) return null;
        const line = slowMs > 0 && at === clients - 1
          ? new Line(world, draws, late, slowMs)
          : new Line(world, draws, late);
        if (client.holdsLog) this.#hostLines.add(line);
        this.#log(`${id} goes to ${place.site.id}`);
        place.process.accept(line);
        return line;
      },
      given: (peer, sequence, text, held) => {
        this.#log(`${id} is told ${text}`);
        this.#given.set(peer, [...this.#given.get(peer) ?? [], { sequence, text }]);
        this.#ledger.given(peer, text, held);
      },
      acknowledged: (peer, count, held) => {
        this.#acknowledged.set(peer, count);
        this.#ledger.acknowledged(peer, count, held);
      },
      rejected: (peer, sequence) => {
        this.#rejected.set(peer, [...this.#rejected.get(peer) ?? [], sequence]);
      },
      ended: (client, end) => this.#ended(client, end),
      probe: (what) => {
        this.#log(`${id} ${what}`);
        this.#probe(what);
      },
      told: (records) => {
        if (!isLiar) return records;
        const { peer } = this.#clients[at] ?? {};
        if (peer != null) this.#unsure.add(peer, "lies");
        return this.#lied(draws, records);
      },
    });
  }

  /** Only an operator leaves a peer behind; a later opening finds that it is. */
  #leftBehind(peers: readonly string[], isForced: boolean): void {
    this.#probe(isForced ? "opened by force" : "found left behind");
    for (const peer of peers) {
      if (!isForced && !this.#unsure.has(peer)) {
        this.#ledger.complain("fault", `${peer} is left behind, and nobody wanted that`);
      }
      this.#unsure.add(peer, "was left behind");
    }
  }

  #ended(client: Client, end: HostEnd): void {
    this.#log(`${client.id} ends: ${JSON.stringify(end)}`);
    this.#probe(`ended: ${end.kind} ${end.code}`);
    // Who closes may learn of it only by being unknown.
    if (end.kind === "bye" || (client.isLeaving && end.code === "peer_unknown")) return;
    const why = this.#unsure.sentAway(client.peer ?? "", end.code);
    if (why !== null) return this.#probe(`excused sent away, and the host ${why}`);
    if (this.#deceptions.size > 0 && end.code === "peer_ahead") {
      return this.#probe("excused sent away, since a host alone was believed");
    }
    this.#ledger.complain("fault", `${client.id} is sent away: ${end.code}: ${end.message}`);
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
        return this.#clients.at(-2)?.records ?? [];
      case "one without its middle":
        return records.length < 3 ? [] : records.toSpliced(1 + Math.min(at, records.length - 3), 1);
      case "none":
        return records;
    }
  }

  async run(): Promise<HostsRun> {
    const world = this.#world, { safetyMs } = this.#plan;
    for (const place of this.#places) void this.#start(place);
    await world.run(world.nowMs + 400);
    for (const client of this.#clients) client.connect();
    await world.run(world.nowMs + 400);
    this.#act();
    this.#disturb().begin();
    await world.run(world.nowMs + safetyMs);
    this.#now.isHealed = true;
    this.#network.heal();
    for (const place of this.#places) void this.#start(place);
    const isDone = () =>
      this.#asked === this.#answers.size &&
      this.#clients.every((client) => client.isDone || client.id === this.#liar);
    await world.run(world.nowMs + HEAL_MS, isDone);
    if (!isDone() && this.#isForced()) await world.run(world.nowMs + HEAL_MS, isDone);
    if (isDone()) await this.#judge();
    else this.#stuck();
    for (const { site } of this.#places) {
      for (const [name, count] of Object.entries(site.homes?.status().counters ?? {})) {
        this.#probe(name, count);
      }
    }
    return { seed: this.#seed, plan: this.#plan, violations: this.#found, probes: this.#probes };
  }

  /** A liar that was sent away does not come back, and may be waited for: from now on it is opened by force. */
  #isForced(): boolean {
    if (this.#liar === null) return false;
    this.#probe("excused waited for a host that lies, and was sent away");
    return this.#now.isForced = true;
  }

  #stuck(): void {
    const who = this.#clients.filter((one) => !one.isDone && one.id !== this.#liar).map((one) =>
      `${one.id} (${one.acknowledged} of ${one.sent})`
    );
    const open = this.#asked - this.#answers.size;
    for (const { site, process } of this.#places) {
      const { home, isolate } = process ?? {};
      const { sequence, released, epoch, hosts } = home ?? {};
      const at = isolate?.states.map(({ entries }) => entries).join();
      this.#log(`${site.id}: ${JSON.stringify({ sequence, released, epoch, at, hosts: hosts?.asked })}`);
    }
    this.#log(JSON.stringify(this.#ledger.row));
    this.#ledger.complain(
      "liveness",
      `${open} requests and ${who.join(", ") || "nobody"} still wait in the end`,
    );
  }

  async #judge(): Promise<void> {
    let last = await this.#last();
    if (last === null && this.#isForced()) last = await this.#last();
    if (last === null) return this.#ledger.complain("liveness", "in the end nobody says how far it is");
    // Some have yet to find out that their site has gone.
    const lacks = ({ id, peer, received, isOver }: Client) =>
      id !== this.#liar && peer !== null && !isOver && (last.sent[peer] ?? 0) !== received;
    await this.#world.run(this.#world.nowMs + 10_000, () => !this.#clients.some(lacks));
    for (const client of this.#clients.filter(lacks)) {
      const { id, peer, received } = client;
      this.#ledger.complain("liveness", `${id} was told ${received} of ${last.sent[peer ?? ""]}`);
    }
    this.#found.push(...check({
      ...{ unsure: this.#unsure, ledger: this.#ledger, deceptions: this.#deceptions, past: this.#past },
      ...{
        made: this.#ledger.made,
        given: this.#given,
        acknowledged: this.#acknowledged,
        ...{ answers: this.#answers, forks: this.#forks },
      },
      ...{ rejected: this.#rejected, written: this.#ledger.written },
      last: last.digest,
    }, (name) => this.#probe(`excused ${name}`)));
  }

  /** What the session says of itself, when nothing more comes. */
  async #last() {
    const world = this.#world;
    for (let i = 0; i < 10; i++) {
      await world.run(world.nowMs + 1_000);
      const request = `final ${i}`;
      this.#request(request);
      await world.run(world.nowMs + 5_000, () => this.#answers.has(request));
      await world.run(world.nowMs + 500);
      const text = this.#answers.get(request);
      const states = this.#places.flatMap(({ process }) => process?.isolate.states ?? []);
      const found = states.find(({ entries, digest }) => text === `${entries} ${digest}`);
      if (found) return found;
    }
    return null;
  }

  #act(): void {
    const { messages, requests, safetyMs } = this.#plan, draws = this.#draws.fork("acts");
    for (const client of this.#clients) {
      for (let i = 0; i < messages; i++) {
        this.#world.after(draws.between(0, safetyMs), () => client.isOver ? undefined : client.send());
      }
    }
    for (let i = 0; i < requests; i++) {
      this.#world.after(draws.between(0, safetyMs), () => this.#request(`r${i}`));
    }
  }

  /** Asked at some site until it is answered. */
  #request(request: string): void {
    this.#asked++;
    const draws = this.#draws.fork(request);
    const ask = () => {
      if (this.#answers.has(request) || this.#past.has(request)) return;
      const { process } = draws.pick(this.#places);
      this.#world.after(draws.between(400, 900), ask);
      if (process === null) return;
      process.host.request(NAME, { request, chain: [], bytes: new Uint8Array(), token: null }).then(
        ({ answer }) => {
          const isLost = this.#places.every((place) => place.process !== process);
          const text = new TextDecoder().decode(answer), before = this.#answers.get(request);
          if (isLost) return;
          if (before !== undefined && before !== text) {
            this.#ledger.complain("contradicted", `${request} was answered ${before}, and ${text}`);
          }
          this.#answers.set(request, text);
        },
        (error) => {
          this.#log(`${request}: ${error}`);
          // An answer is kept for a minute: where clocks are set that may be over before who asked could hear it.
          const isPast = error instanceof Problem && error.code === "superseded";
          if (this.#plan.jumps > 0 && isPast && !this.#past.has(request)) {
            this.#past.add(request);
            this.#asked--;
          }
        },
      );
    };
    ask();
  }

  #disturb(): Faults {
    return new Faults({
      ...{ plan: this.#plan, now: this.#now, world: this.#world, draws: this.#draws, network: this.#network },
      ...{ places: this.#places, clients: this.#clients, ledger: this.#ledger },
      ...{ unsure: this.#unsure, liar: this.#liar, followers: this.#around.followers },
      start: (place) => void this.#start(place),
      log: (text) => this.#log(text),
      probe: (what) => this.#probe(what),
    });
  }

  #probe(name: string, by = 1): void {
    this.#probes[name] = (this.#probes[name] ?? 0) + by;
  }
}
