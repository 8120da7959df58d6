/**
 * One site in virtual time: its disks, and one process after another over them, each with a detector, the production
 * code of homes, and a host that runs the sessions that are open here, and sends requests on to where they are.
 */
import { BOOT_MIN, Homes, type HomesPorts, type StatefulName } from "../../../functions/sessions/home/mod.ts";
import type { HostsPort } from "../../../functions/sessions/log/hosts_asked.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { decodeMessage, encodeMessage } from "../../../store/wire/message.ts";
import { type Candidate, checkOwners, chooseOwners, nearestFirst } from "../../../store/presence/choose.ts";
import { Detector, type DetectorTimes } from "../../../store/presence/detector.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import { type DiskCopy, SimDisk } from "../../sim/disk.ts";
import type { Endpoint, SimNetwork } from "../../sim/network.ts";
import type { Draws } from "../../sim/random.ts";
import { ProcessClock, type World } from "../../sim/world.ts";
import { type Heard, Host, type HostPlan, type HostWrongs } from "./host.ts";
import { decode, encode } from "./program.ts";

/** What makes a process wrong on purpose, from outside the code under test. */
export interface Wrongs extends HostWrongs {
  readonly storage?: (storage: Storage, site: StatefulSite) => Storage;
  readonly arbiterStorage?: (storage: Storage, site: StatefulSite) => Storage;
  /** The root is a home as any other (functions/sessions/home/seats.ts). */
  readonly restsAtTheRoot?: boolean;
  /** A packet on its way in, and from whom; null: it is lost. */
  readonly receives?: (site: StatefulSite, from: SiteId, packet: Uint8Array) => [SiteId, Uint8Array] | null;
  /** A packet on its way out; null: it is lost. */
  readonly sends?: (site: StatefulSite, to: SiteId, packet: Uint8Array) => Uint8Array | null;
}

export interface StatefulSiteOptions {
  readonly id: SiteId;
  readonly sites: readonly SiteId[];
  readonly isRoot: boolean;
  /** Whether homes rest at the root only where nobody else can have them (functions/sessions/home/seats.ts). */
  readonly seats?: boolean;
  readonly f: number;
  readonly times: DetectorTimes;
  readonly world: World;
  readonly network: SimNetwork;
  readonly draws: Draws;
  readonly commitMs: readonly [number, number];
  readonly drift: number;
  readonly host: HostPlan;
  readonly wrongs: Wrongs;
  /** Chance that a site is found gone that is there. */
  readonly mistakes?: number;
  /** Whether that can't be any more. */
  readonly isUnmistaken?: () => boolean;
  /** Chance that a packet comes again, seconds later, whoever lives then. */
  readonly echoChance: number;
  readonly heard: (heard: Heard) => void;
  readonly hasAnswer?: (name: StatefulName, request: string) => boolean;
  readonly complain: (text: string) => void;
  /** Hears that a home is over. */
  readonly onOver?: HomesPorts["onOver"];
  /** Hears what is due, instead of the host. */
  readonly due?: (site: SiteId, name: StatefulName) => void;
  /** Logs that its disk has room for. */
  readonly keptMax?: number;
  /** Bounds of its homes, where they are not those of limits.ts. */
  readonly bounds?: Pick<HomesPorts, "answersBytesMax" | "perAppMax" | "batchBytes" | "endedMs" | "openOf">;
  /** Hears what its homes have to say. */
  readonly note?: (site: SiteId, event: string) => void;
  /** How its homes reach clients that hold logs. */
  readonly hosts?: HostsPort;
  /** Something of the process is seen by its host. */
  readonly passes?: (site: SiteId, point: string) => void;
}

interface Process extends Endpoint {
  readonly homes: Homes;
  readonly host: Host;
  readonly detector: Detector;
  readonly clock: ProcessClock;
  alive: boolean;
}

/** Of a site's disks. */
interface SiteCopy {
  readonly logs: DiskCopy;
  /** null: it has none. */
  readonly arbiter: DiskCopy | null;
}

const BEAT = 0, PACKET = 1, CALL = 2, ANSWER = 3;
const ECHO_MS = 6_000;
const LOOK_MS_MAX = 10;
/** How long a site waits for another that it sent a request on to. */
const CALL_MS = 1_200;

export type Answered = { readonly ok: boolean; readonly value: string };

export class StatefulSite {
  readonly id: SiteId;
  readonly options: StatefulSiteOptions;
  readonly #newDisk: (rows?: DiskCopy) => SimDisk;
  disk: SimDisk;
  arbiterDisk: SimDisk | null;
  #process: Process | null = null;
  #starts = 0;
  #calls = 0;
  readonly #calling = new Map<number, (answered: Answered) => void>();
  readonly counters: Record<string, number> = {};
  /** Of the process that runs. */
  boot = 0;
  /** Sends a packet as if the code under test had. */
  answer: (to: SiteId, packet: Uint8Array) => void = () => {};

  constructor(options: StatefulSiteOptions) {
    this.id = options.id;
    this.options = options;
    const { world, commitMs } = options;
    const draws = options.draws.fork("disk");
    this.#newDisk = (rows) =>
      new SimDisk({
        clock: {
          nowMs: () => world.nowMs,
          steadyMs: () => world.nowMs,
          after: (ms, run) => world.after(ms, run),
          turn: () => world.sleep(0),
        },
        random: () => draws.unit(),
        commitDelayMs: commitMs,
        earlyChance: 0,
      }, rows?.copy());
    this.disk = this.#newDisk();
    this.arbiterDisk = options.isRoot ? this.#newDisk() : null;
  }

  /** What is on its disks now. */
  copy(): SiteCopy {
    return { logs: this.disk.copy(), arbiter: this.arbiterDisk?.copy() ?? null };
  }

  /** An operator puts a copy of its disks back, or of the arbiter's alone; it is down. */
  putBack({ logs, arbiter }: Partial<SiteCopy>): void {
    if (logs !== undefined) this.disk = this.#newDisk(logs);
    if (arbiter) this.arbiterDisk = this.#newDisk(arbiter);
  }

  get isUp(): boolean {
    return this.#process !== null;
  }

  get homes(): Homes | null {
    return this.#process?.homes ?? null;
  }

  get host(): Host | null {
    return this.#process?.host ?? null;
  }

  standing(site: SiteId): string {
    return this.#process?.detector.standing(site) ?? "unknown";
  }

  async start(): Promise<void> {
    if (this.#process !== null) return;
    const { id, world, network, drift, wrongs, times, complain } = this.options;
    const attempt = ++this.#starts;
    const isCurrent = () => attempt === this.#starts;
    const passes = (point: string) => {
      if (isCurrent()) this.options.passes?.(id, point);
    };
    const clock = new ProcessClock(world, {
      skewMs: 0,
      drift,
      turning: () => passes("turn"),
      due: () => passes("timer"),
    });
    const nowMs = () => clock.nowMs();
    const draws = this.options.draws.fork(`process ${attempt}`);
    const holder: { process: Process | null } = { process: null };
    const send = (to: SiteId, kind: number, bytes: Uint8Array) => {
      const { process } = holder;
      if (process === null || !process.alive) return Promise.resolve();
      if (kind === PACKET) passes("packet leaves");
      if (!process.alive) return Promise.resolve();
      return network.send(process, id, to, new Uint8Array([kind, ...bytes]));
    };
    const detector = new Detector({
      nowMs,
      wallMs: nowMs,
      after: (ms, callback) => clock.after(ms, callback),
      send: (to, beat) => send(to, BEAT, encodeMessage(beat)),
      isKnown: () => true,
      knowsTree: () => true,
      awayUntilMs: () => undefined,
      count: () => {},
      note: () => {},
    }, times);
    for (const other of this.options.sites) if (other !== id) detector.watch(other);
    let host: Host | null = null;
    const storageOf = (disk: SimDisk): Storage => watched(disk, passes);
    this.boot = BOOT_MIN + draws.integer(0, 2 ** 40);
    this.answer = (to, packet) => void send(to, PACKET, packet);
    const ports: HomesPorts = {
      site: id,
      boot: this.boot,
      clock,
      nowMs,
      random: { bytes: (length) => draws.bytes(length) },
      storage: wrongs.storage?.(storageOf(this.disk), this) ?? storageOf(this.disk),
      arbiterStorage: this.arbiterDisk === null
        ? null
        : wrongs.arbiterStorage?.(storageOf(this.arbiterDisk), this) ?? storageOf(this.arbiterDisk),
      arbiter: () => this.options.sites[0] ?? id,
      send: (to, packet) => {
        const out = wrongs.sends === undefined ? packet : wrongs.sends(this, to, packet);
        if (out === null) return Promise.resolve();
        this.#echo(to, out);
        return send(to, PACKET, out);
      },
      fellows: this.#fellows(detector),
      due: (name) => this.options.due === undefined ? host?.due(name) : this.options.due(id, name),
      ...(this.options.keptMax === undefined ? {} : { keptMax: this.options.keptMax }),
      ...this.options.bounds,
      ...(this.options.hosts === undefined ? {} : { hosts: this.options.hosts }),
      ...(this.options.onOver === undefined ? {} : { onOver: this.options.onOver }),
      note: (event) => this.options.note?.(id, event),
      fatal: (error) => {
        if (isCurrent()) complain(`${id} fails: ${error.stack ?? error.message}`);
      },
    };
    const homes = await Homes.open(ports);
    if (!isCurrent()) return;
    host = new Host({
      homes,
      site: id,
      clock,
      draws: draws.fork("host"),
      plan: this.options.host,
      wrongs,
      isAlive: isCurrent,
      heard: this.options.heard,
      hasAnswer: this.options.hasAnswer ?? (() => false),
      complain,
      sites: this.options.sites,
      call: (to, name, request) => this.#call(send, to, name, request, clock),
    });
    const process: Process = {
      homes,
      host,
      detector,
      clock,
      alive: true,
      connected: () => {},
      disconnected: (site) => this.#look(detector, site),
      receive: (from, bytes) => {
        if (!process.alive) return;
        detector.heard(from);
        this.#take(process, send, from, bytes, passes);
      },
    };
    holder.process = this.#process = process;
    network.up(id, process);
  }

  /** Power is cut; `wipe`: the disk of logs is lost, too. */
  crash(wipe: boolean): void {
    const process = this.#process;
    if (process === null) return;
    for (const [name, count] of Object.entries(process.homes.status().counters)) {
      this.counters[name] = (this.counters[name] ?? 0) + count;
    }
    process.alive = false;
    process.detector.close();
    process.clock.stop();
    this.options.network.down(this.id);
    this.#starts++;
    this.#process = null;
    this.#calling.clear();
    this.disk = wipe ? this.disk.wipe() : this.disk.crash();
    this.arbiterDisk = this.arbiterDisk?.crash() ?? null;
  }

  /** A client asks; the answer, or never where the process dies. */
  request(name: StatefulName, request: string, answered: (answered: Answered) => void): void {
    const process = this.#process;
    if (process === null) return answered({ ok: false, value: "down" });
    void process.host.request(name, request).then((one) => {
      if (process.alive) answered(one);
    });
  }

  /** A clock that is set, or a process that stood still. */
  jump(ms: number): void {
    if (this.#process !== null) this.#process.clock.jumpedMs += ms;
  }

  /** What a link never does, and a process that thought it was the home might: it says the same much later. */
  #echo(to: SiteId, packet: Uint8Array): void {
    const { draws, echoChance, world, id } = this.options;
    if (echoChance === 0 || !draws.chance(echoChance)) return;
    const target = this.peers.get(to);
    world.after(draws.between(0, ECHO_MS), () => {
      target?.receive(id, packet);
    });
  }

  /** Other sites; set once all are made. */
  peers: ReadonlyMap<SiteId, StatefulSite> = new Map();

  receive(from: SiteId, packet: Uint8Array): void {
    this.#process?.homes.received(from, packet);
  }

  #take(
    process: Process,
    send: (to: SiteId, kind: number, bytes: Uint8Array) => Promise<void>,
    from: SiteId,
    bytes: Uint8Array,
    passes: (point: string) => void,
  ): void {
    const body = bytes.slice(1);
    if (bytes[0] === BEAT) {
      const beat = decodeMessage(body);
      if (beat.kind === "beat") process.detector.received(from, beat);
    } else if (bytes[0] === PACKET) {
      passes("packet arrives");
      if (!process.alive) return;
      const { receives } = this.options.wrongs;
      const taken = receives === undefined ? [from, body] as const : receives(this, from, body);
      if (taken !== null) this.#received(process, taken[0], taken[1]);
    } else if (bytes[0] === CALL) {
      const { number, name, request } = decode(body);
      void process.host.here(name, request).then((answered) => {
        if (process.alive) void send(from, ANSWER, encode({ number, ...answered }));
      });
    } else {
      const { number, ok, value } = decode(body);
      this.#calling.get(number)?.({ ok, value });
      this.#calling.delete(number);
    }
  }

  /** No site writes what another can't read. */
  #received({ homes }: Process, from: SiteId, packet: Uint8Array): void {
    try {
      homes.received(from, packet);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.options.complain(`a packet of ${from} can't be read: ${error.message}`);
    }
  }

  #call(
    send: (to: SiteId, kind: number, bytes: Uint8Array) => Promise<void>,
    to: SiteId,
    name: StatefulName,
    request: string,
    clock: ProcessClock,
  ): Promise<Answered> {
    const number = ++this.#calls;
    const { promise, resolve } = Promise.withResolvers<Answered>();
    this.#calling.set(number, resolve);
    clock.after(CALL_MS, () => {
      this.#calling.delete(number);
      resolve({ ok: false, value: "silent" });
    });
    void send(to, CALL, encode({ number, name, request }));
    return promise;
  }

  /** What a link finds at another's address: nobody, where its process is gone; sometimes it is wrong. */
  #look(detector: Detector, site: SiteId): void {
    const { world, draws, mistakes = 0, isUnmistaken } = this.options;
    const isMistaken = draws.chance(mistakes) && isUnmistaken?.() !== true;
    world.after(draws.between(0, LOOK_MS_MAX), () => {
      if (isMistaken || this.peers.get(site)?.isUp === false) detector.refused(site);
    });
  }

  #fellows(detector: Detector): HomesPorts["fellows"] {
    const { id, sites } = this.options, options = this.options;
    return {
      get f() {
        return options.f;
      },
      sites: () => sites,
      choose: (kept, without, last) => {
        const { f } = options;
        checkOwners(id, { f, sites: null }, sites);
        const candidates: Candidate[] = detector.list().map(({ site, rttMs, standing }) => ({
          id: site,
          area: null,
          rttMs,
          isAlive: standing === "alive" && !without(site),
          isLast: site === last,
        }));
        const keptSites = kept.map((site) => ({ id: site, area: null }));
        return chooseOwners({ id, area: null }, { f, nearMs: 0 }, candidates, keptSites);
      },
      ...(options.seats === true
        ? { nearest: () => nearestFirst(detector.list().filter(({ standing }) => standing === "alive")) }
        : {}),
      isKnown: () => true,
      standing: (site) => detector.presence(site),
      watch: (site) => detector.watch(site),
      onChange: (changed) => detector.onPresence(changed),
      look: (site) => this.#look(detector, site),
    };
  }
}

/** A disk whose begins and ends are seen. */
function watched(disk: SimDisk, passes: (point: string) => void): Storage {
  const around = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
    passes(`${what} begins`);
    const value = await run();
    passes(`${what} ends`);
    return value;
  };
  return {
    load: () => disk.load(),
    get: (key) => around("read", () => disk.get(key)),
    getMany: (keys) => around("read", () => disk.getMany(keys)),
    scan: (range, options) => disk.scan(range, options),
    journal: (after, upTo, limit) => disk.journal(after, upTo, limit),
    bytes: () => disk.bytes(),
    close: () => disk.close(),
    commit: (commit) => around("commit", () => disk.commit(commit)),
  };
}
