/**
 * What one site of a run has above its replica: the disks of its homes and, at the root, of the arbiter, and one process
 * after another over them (process.ts). The replica, its disk, its clock and its links are tests/sim's (sim/site.ts).
 */
import { BOOT_MIN, Homes } from "../../functions/sessions/home/mod.ts";
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { SiteId, Storage } from "../../store/model/ports.ts";
import { type DiskCopy, SimDisk } from "../sim/disk.ts";
import type { Draws } from "../sim/random.ts";
import { heardBy } from "../sim/recording.ts";
import type { Above, AboveParts, AboveProcess, SimSite, SiteProcess as ReplicaProcess } from "../sim/site.ts";
import { openOf } from "../../functions/sessions/serve/pieces.ts";
import { SiteProcess } from "./process.ts";
import type { Surroundings } from "./surroundings.ts";

interface Running {
  readonly homes: Homes;
  readonly process: SiteProcess;
}

/** The disks that a site has beside its replica's. */
export type DiskName = "homes" | "arbiter";

const USE = "homes";
const LOOK_MS_MAX = 10, ECHO_MS = 6_000;
const CLOSE_MS = 500;

/** See the file's header. */
export class Site implements Above {
  readonly sim: SimSite;
  readonly #around: Surroundings;
  readonly #draws: Draws;
  readonly #disks = new Map<DiskName, SimDisk>();
  #running: Running | null = null;
  #processes = 0;
  readonly counters: Record<string, number> = {};

  constructor(sim: SimSite, around: Surroundings, draws: Draws) {
    this.sim = sim;
    this.#around = around;
    this.#draws = draws;
    this.#disks.set("homes", this.#newDisk("disk", false));
    if (sim.plan.parent === null) this.#disks.set("arbiter", this.#newDisk("arbiter", true));
  }

  get id(): SiteId {
    return this.sim.plan.id;
  }

  #newDisk(name: string, isArbiters: boolean, rows?: DiskCopy): SimDisk {
    const { world, plan } = this.#around;
    const commitMs = isArbiters ? plan.arbiterMs ?? plan.commitMs : plan.commitMs;
    const draws = this.#draws.fork(name);
    return new SimDisk({
      clock: {
        nowMs: () => world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, run) => world.after(ms, run),
        turn: () => world.sleep(0),
      },
      random: () => draws.unit(),
      commitDelayMs: commitMs,
      earlyChance: this.#around.plan.earlyChance ?? 0,
      keepChance: this.#around.plan.store.keepChance,
    }, rows?.copy());
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

  async begin(process: ReplicaProcess, parts: AboveParts): Promise<AboveProcess | null> {
    const { passed, isAlive, draws } = parts;
    const { clock } = process;
    const steady: PeerClock = { nowMs: () => clock.steadyMs(), after: (ms, run) => clock.after(ms, run) };
    const held: { running?: Running } = {};
    const homes = await this.#homes(process, parts, steady, held);
    if (!isAlive()) return null;
    const above = await SiteProcess.open({
      ...{
        name: `process ${++this.#processes} of ${this.id}`,
        site: this.id,
        around: this.#around,
        clock: steady,
        wallMs: () => process.replica.nowMs(),
        draws,
        homes,
      },
      ...{ replica: process.replica, isAlive, send: parts.send, passes: passed },
    });
    if (!isAlive()) return null;
    const { owesNothing } = this.#around.wrongs;
    const running: Running = held.running = { homes, process: above };
    this.#running = running;
    let closing: Promise<void> | undefined;
    return {
      received: (from, message) => above.links.received(from, message),
      get owed() {
        return owesNothing === true ? Infinity : above.host.owed;
      },
      disconnected: (site) => {
        above.links.disconnected(site);
        this.#look(process, site);
      },
      close: () =>
        closing ??= (async () => {
          if (this.#running !== running) return;
          above.ends.close();
          above.standbys.close();
          await above.host.close();
          above.router.close();
          await homes.close(CLOSE_MS);
        })(),
    };
  }

  async #homes(
    process: ReplicaProcess,
    { passed, isAlive, draws, fatal }: AboveParts,
    steady: PeerClock,
    held: { readonly running?: Running },
  ): Promise<Homes> {
    const { id } = this, { wrongs, root, plan } = this.#around;
    const early: [SiteId, Uint8Array][] = [];
    const opened: { homes?: Homes } = {};
    const { clock, replica: { owners } } = process;
    const send = owners.channel(USE, (from, packet) => {
      if (!isAlive()) return;
      const taken = wrongs.receives === undefined
        ? [from, packet] as const
        : wrongs.receives(id, from, packet);
      if (taken === null) return;
      if (opened.homes === undefined) early.push([taken[0], taken[1]]);
      else opened.homes.received(taken[0], taken[1]);
    });
    const disk = (name: DiskName): Storage | null => {
      const found = this.#disks.get(name);
      const pass = (point: string) => passed(name === "arbiter" ? `arbiter ${point}` : point);
      return found === undefined ? null : heardBy(watched(found, pass), clock);
    };
    const storage = disk("homes");
    if (storage === null) throw new Error(`${id} has no disk for homes`);
    const homes = opened.homes = await Homes.open({
      ...{ site: id, boot: BOOT_MIN + draws.integer(0, 2 ** 40), nowMs: steady.nowMs },
      clock: {
        nowMs: () => process.replica.nowMs(),
        steadyMs: () => clock.steadyMs(),
        after: (ms, run) => clock.after(ms, run),
        turn: () => clock.turn(),
      },
      random: { bytes: (length) => draws.bytes(length) },
      storage: wrongs.storage?.(storage, id) ?? storage,
      ...{ arbiterStorage: disk("arbiter"), batchBytes: plan.batchBytes },
      arbiter: () => root,
      send: (to, packet) => {
        this.#echo(to, packet);
        return send(to, packet);
      },
      fellows: {
        get f() {
          return owners.settings.f;
        },
        sites: () => [...process.replica.members.sites.keys()],
        choose: (kept, without, last) => owners.choose(owners.settings.f, kept, without, last),
        ...(plan.hasSeats === true ? { nearest: () => owners.nearest() } : {}),
        isKnown: (site) => owners.isKnown(site),
        standing: (site) => owners.detector.presence(site),
        watch: (site) => owners.detector.watch(site),
        onChange: (changed) => owners.detector.onPresence(changed),
        look: (site) => this.#look(process, site),
      },
      due: (name) => held.running?.process.host.wake(name),
      openOf,
      hosts: {
        ask: async (...asked) =>
          await held.running?.process.host.hosts.ask(...asked) ?? new Map<string, null>(),
      },
      onOver: (name, epoch, error) => {
        if (wrongs.isDeaf !== true) held.running?.process.host.homeOver(name, epoch, error);
      },
      onLog: (log, news) => held.running?.process.standbys.onLog(log, news),
      note: () => {},
      fatal,
    });
    for (const [from, packet] of early) homes.received(from, packet);
    return homes;
  }

  ended(isWiped: boolean): void {
    const running = this.#running;
    if (running !== null) {
      this.count();
      for (const program of running.process.programs) program.isOver = true;
      this.#around.died(this.id);
    }
    this.#running = null;
    for (const [name, disk] of this.#disks) this.#disks.set(name, isWiped ? disk.wipe() : disk.crash());
  }

  /** A copy of one of its disks, as its power being cut now would leave it. */
  copyDisk(name: DiskName): DiskCopy | null {
    return this.#disks.get(name)?.copy() ?? null;
  }

  /** A copy is put in the place of a disk, or a blank one; no process runs. */
  putDisk(name: DiskName, copy: DiskCopy | null): void {
    this.#disks.set(name, this.#newDisk(`${name} ${this.#processes}`, name === "arbiter", copy ?? undefined));
  }

  fillDisks(): void {
    for (const disk of this.#disks.values()) disk.fail();
  }

  slowDisks(factor: number): void {
    for (const disk of this.#disks.values()) disk.slow(factor);
  }

  /** Adds what the homes have counted. */
  count(): void {
    for (const [name, count] of Object.entries(this.homes?.status().counters ?? {})) {
      this.counters[name] = (this.counters[name] ?? 0) + count;
    }
  }

  /** What a link never does, and a process that thought it was the home might: it says the same much later. */
  #echo(to: SiteId, packet: Uint8Array): void {
    const { plan: { echoChance }, world, sites } = this.#around;
    if (echoChance === 0 || !this.#draws.chance(echoChance)) return;
    world.after(this.#draws.between(0, ECHO_MS), () => sites.get(to)?.homes?.received(this.id, packet));
  }

  /** What a dial of another's address finds: nobody, where its process is gone; sometimes it is wrong. */
  #look({ replica, clock }: ReplicaProcess, site: SiteId): void {
    const { plan: { mistakes }, network } = this.#around;
    const isMistaken = this.#draws.chance(mistakes);
    clock.after(this.#draws.between(0, LOOK_MS_MAX), () => {
      if (isMistaken || network.isThere(this.id, site) === "refused") replica.owners.detector.refused(site);
    });
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
