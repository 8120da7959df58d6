/**
 * One site in virtual time: its disks, its clock, and one process after another over them (process.ts), each with a
 * detector of who lives. What reaches a process that has died is lost.
 */
import { Homes, type HomesPorts } from "../../../functions/homes/mod.ts";
import type { PeerClock } from "../../../functions/peers/mod.ts";
import { decodeMessage, encodeMessage } from "../../../store/message.ts";
import { type Candidate, checkOwners, chooseOwners } from "../../../store/owners/choose.ts";
import { Detector } from "../../../store/owners/detector.ts";
import type { SiteId, Storage } from "../../../store/ports.ts";
import { SimDisk } from "../../sim/disk.ts";
import type { Endpoint } from "../../sim/network.ts";
import type { Draws } from "../../sim/random.ts";
import { ProcessClock } from "../../sim/world.ts";
import { SiteProcess } from "./process.ts";
import type { Surroundings } from "./surroundings.ts";

interface Running extends Endpoint {
  readonly clock: ProcessClock;
  readonly detector: Detector;
  readonly homes: Homes;
  readonly process: SiteProcess;
  alive: boolean;
}

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const BEAT = 0, PACKET = 1, LINK = 2;
const LOOK_MS_MAX = 10, ECHO_MS = 6_000;

/** See the file's header. */
export class Site {
  readonly id: SiteId;
  readonly #around: Surroundings;
  readonly #draws: Draws;
  readonly #drift: number;
  #disk: SimDisk;
  #arbiterDisk: SimDisk | null;
  #running: Running | null = null;
  #starts = 0;
  /** Of a process that is about to serve. */
  #starting: ProcessClock | null = null;
  /** Its wall clock was set by so much. */
  #setMs = 0;
  readonly counters: Record<string, number> = {};

  constructor(id: SiteId, around: Surroundings, draws: Draws) {
    this.id = id;
    this.#around = around;
    this.#draws = draws;
    this.#drift = draws.pick([0, 0.01, -0.01]);
    this.#disk = this.#newDisk("disk");
    this.#arbiterDisk = id === around.sites[0] ? this.#newDisk("arbiter") : null;
  }

  #newDisk(name: string): SimDisk {
    const { world, commitMs } = this.#around;
    const draws = this.#draws.fork(name);
    return new SimDisk({
      clock: {
        nowMs: () => world.nowMs,
        after: (ms, run) => world.after(ms, run),
        turn: () => world.sleep(0),
      },
      random: () => draws.unit(),
      commitDelayMs: commitMs,
      earlyChance: 0,
    });
  }

  get isUp(): boolean {
    return this.#running !== null;
  }

  get homes(): Homes | null {
    return this.#running?.homes ?? null;
  }

  get process(): SiteProcess | null {
    return this.#running?.process ?? null;
  }

  async start(): Promise<void> {
    if (this.#running !== null || this.#starting !== null) return;
    const { id } = this, { world, network, passes } = this.#around;
    const attempt = ++this.#starts;
    const isAlive = () => attempt === this.#starts;
    const pass = (point: string) => isAlive() && passes(id, point);
    const clock = new ProcessClock(world, {
      ...{ skewMs: 0, drift: this.#drift },
      turning: () => pass("turn"),
      due: () => pass("timer"),
    });
    this.#starting = clock;
    const steady: PeerClock = { nowMs: () => clock.nowMs(), after: (ms, run) => clock.after(ms, run) };
    const wallMs = () => clock.nowMs() + this.#setMs;
    const draws = this.#draws.fork(`process ${attempt}`);
    const held: { running?: Running } = {};
    const send = async (to: SiteId, kind: number, bytes: Uint8Array) => {
      const { running } = held;
      if (running?.alive !== true) return;
      if (kind !== BEAT) pass("message leaves");
      if (running.alive) await network.send(running, id, to, new Uint8Array([kind, ...bytes]));
    };
    const detector = this.#detector(steady, wallMs, (to, beat) => send(to, BEAT, beat));
    const homes = await this.#homes(clock, wallMs, detector, held, draws, isAlive, pass, send);
    if (!isAlive()) return;
    const process = await SiteProcess.open({
      ...{ site: id, around: this.#around, clock: steady, wallMs, draws, homes, detector, isAlive },
      ...{ send: (to, message) => void send(to, LINK, message), passes: pass },
    });
    if (!isAlive()) return;
    const running: Running = held.running = {
      ...{ clock, detector, homes, process, alive: true, connected: () => {} },
      disconnected: (site) => {
        process.links.disconnected(site);
        this.#look(detector, site);
      },
      receive: (from, bytes) => this.#receive(running, from, bytes, pass),
    };
    this.#running = running;
    this.#starting = null;
    network.up(id, running);
  }

  #homes(
    clock: ProcessClock,
    wallMs: () => number,
    detector: Detector,
    held: { readonly running?: Running },
    draws: Draws,
    isAlive: () => boolean,
    pass: (point: string) => void,
    send: (to: SiteId, kind: number, bytes: Uint8Array) => Promise<void>,
  ): Promise<Homes> {
    const { id } = this, { sites, wrongs, complain } = this.#around;
    const storage = watched(this.#disk, pass);
    return Homes.open({
      ...{ site: id, boot: 1 + draws.integer(0, 2 ** 40), nowMs: () => clock.nowMs() },
      clock: { nowMs: wallMs, after: (ms, run) => clock.after(ms, run), turn: () => clock.turn() },
      random: { bytes: (length) => draws.bytes(length) },
      storage: wrongs.storage?.(storage, id) ?? storage,
      arbiterStorage: this.#arbiterDisk === null ? null : watched(this.#arbiterDisk, pass),
      arbiter: () => sites[0] ?? id,
      send: (to, packet) => {
        this.#echo(to, packet);
        return send(to, PACKET, packet);
      },
      fellows: this.#fellows(detector),
      due: (name) => held.running?.process.host.wake(name),
      hosts: {
        ask: async (...asked) =>
          await held.running?.process.host.hosts.ask(...asked) ?? new Map<string, null>(),
      },
      onOver: (name, epoch, error) => {
        if (wrongs.isDeaf !== true) held.running?.process.host.homeOver(name, epoch, error);
      },
      onLog: (log, news) => held.running?.process.standbys.onLog(log, news),
      note: () => {},
      fatal: (error) => {
        if (isAlive()) complain(`${id} fails: ${error.stack ?? error.message}`);
      },
    });
  }

  /** Power is cut; `wipe`: the disk of logs is lost, too. */
  crash(wipe: boolean): void {
    const running = this.#running;
    if (running === null && this.#starting === null) return;
    this.count();
    this.#starts++;
    this.#starting?.stop();
    this.#starting = null;
    if (running !== null) {
      running.alive = false;
      running.detector.close();
      running.clock.stop();
      for (const program of running.process.programs) program.isOver = true;
      this.#around.network.down(this.id);
      this.#around.died(this.id);
    }
    this.#running = null;
    this.#disk = wipe ? this.#disk.wipe() : this.#disk.crash();
    this.#arbiterDisk = this.#arbiterDisk?.crash() ?? null;
  }

  /** A planned stop: what is open moves or rests; then it ends. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    const { process, homes } = running;
    process.ends.close();
    process.standbys.close();
    await process.host.close();
    process.router.close();
    await homes.close(500);
    if (this.#running === running) this.crash(false);
  }

  /** Adds what the homes have counted. */
  count(): void {
    for (const [name, count] of Object.entries(this.homes?.status().counters ?? {})) {
      this.counters[name] = (this.counters[name] ?? 0) + count;
    }
  }

  /** Its process stood still for so long. */
  standStill(ms: number): void {
    if (this.#running !== null) this.#running.clock.jumpedMs += ms;
  }

  /** Its wall clock is set. */
  set(ms: number): void {
    this.#setMs += ms;
  }

  /** Its wall clock is put right. */
  setRight(): void {
    this.#setMs = 0;
  }

  #receive(running: Running, from: SiteId, bytes: Uint8Array, pass: (point: string) => void): void {
    if (!running.alive) return;
    running.detector.heard(from);
    const body = bytes.slice(1);
    if (bytes[0] === BEAT) {
      const beat = decodeMessage(body);
      if (beat.kind === "beat") running.detector.received(from, beat);
      return;
    }
    pass("message arrives");
    if (!running.alive) return;
    if (bytes[0] === LINK) return running.process.links.received(from, body);
    const { receives } = this.#around.wrongs;
    const taken = receives === undefined ? [from, body] as const : receives(this.id, from, body);
    if (taken !== null) running.homes.received(taken[0], taken[1]);
  }

  #detector(
    { nowMs, after }: PeerClock,
    wallMs: () => number,
    send: (to: SiteId, beat: Uint8Array) => Promise<void>,
  ): Detector {
    const detector = new Detector({
      ...{ nowMs, after, wallMs, isKnown: () => true, knowsTree: () => true },
      send: (to, beat) => send(to, encodeMessage(beat)),
      ...{ awayUntilMs: () => undefined, count: () => {}, note: () => {} },
    }, TIMES);
    for (const other of this.#around.sites) if (other !== this.id) detector.watch(other);
    return detector;
  }

  /** What a link never does, and a process that thought it was the home might: it says the same much later. */
  #echo(to: SiteId, packet: Uint8Array): void {
    const { echoChance, world, peers } = this.#around;
    if (echoChance === 0 || !this.#draws.chance(echoChance)) return;
    world.after(this.#draws.between(0, ECHO_MS), () => peers.get(to)?.homes?.received(this.id, packet));
  }

  /** What a link finds at another's address: nobody, where its process is gone; sometimes it is wrong. */
  #look(detector: Detector, site: SiteId): void {
    const { world, mistakes, peers } = this.#around;
    const isMistaken = this.#draws.chance(mistakes);
    world.after(this.#draws.between(0, LOOK_MS_MAX), () => {
      if (isMistaken || peers.get(site)?.isUp === false) detector.refused(site);
    });
  }

  #fellows(detector: Detector): HomesPorts["fellows"] {
    const { id } = this, { sites, f } = this.#around;
    return {
      f,
      choose: (kept, without, last) => {
        checkOwners(id, { f, sites: null }, sites);
        const candidates: Candidate[] = detector.list().map(({ site, rttMs, standing }) => ({
          ...{ id: site, area: null, rttMs, isLast: site === last },
          isAlive: standing === "alive" && !without(site),
        }));
        const keptSites = kept.map((site) => ({ id: site, area: null }));
        return chooseOwners({ id, area: null }, { f, nearMs: 0 }, candidates, keptSites);
      },
      isKnown: () => true,
      standing: (site) => detector.presence(site),
      watch: (site) => detector.watch(site),
      onChange: (changed) => detector.onPresence(changed),
      look: (site) => this.#look(detector, site),
    };
  }
}

/** A disk whose begins and ends are seen. */
function watched(disk: SimDisk, pass: (point: string) => void): Storage {
  const around = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
    pass(`${what} begins`);
    const value = await run();
    pass(`${what} ends`);
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
