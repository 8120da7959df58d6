/**
 * A tree of sites over real folders: the storages, homes, arbiter, kept outcomes and ended logs of a site as
 * it opens them, over links and clocks in virtual time (tests/sim). Isolates, gateways and processes are left out: they
 * keep nothing on disk.
 *
 * Life of a site: `start` (its disks are opened, or refuse) → joins → ready → `stop`, or `kill`.
 *
 * DT1  Virtual time stands still while a real disk is at work.
 */
import { join } from "node:path";
import { BOOT_MIN, Homes } from "../../functions/sessions/home/mod.ts";
import { KeptOutcomes } from "../../runtime/origins/kept_outcomes.ts";
import { parseSiteConfig, type SiteConfig } from "../../runtime/site/config.ts";
import { openData } from "../../runtime/site/data_folder.ts";
import { DiskDamage } from "../../runtime/site/disk_damage.ts";
import { ownersSettings } from "../../runtime/site/owners_fields.ts";
import { markOlder } from "../../runtime/site/lost_folder.ts";
import { withParent } from "../../runtime/site/parent_file.ts";
import { StatefulDisks } from "../../runtime/site/stateful_disks.ts";
import { EndedLogs } from "../../functions/sessions/serve/ended_logs.ts";
import type { Replica } from "../../store/api/api.ts";
import { Core } from "../../store/core/core.ts";
import { OlderDisk } from "../../store/core/lost.ts";
import { SiteReplica } from "../../store/replica.ts";
import type { SiteId, Storage } from "../../store/model/ports.ts";
import { type Endpoint, SimNetwork } from "../sim/network.ts";
import { Draws } from "../sim/random.ts";
import { ProcessClock, World } from "../sim/world.ts";

/** Sites, each with its parent in the site file. */
export const SITES = [
  { id: "cloud", parent: null },
  { id: "core", parent: "cloud" },
  { id: "edge", parent: "core" },
  { id: "far", parent: "cloud" },
] as const;

export type TreeSite = typeof SITES[number]["id"];

/** What runs at a site. */
export interface Process {
  readonly replica: Replica;
  /** Null until the site is ready, and where its disks refuse. */
  readonly homes: Homes | null;
  readonly outcomes: KeptOutcomes | null;
  readonly ended: EndedLogs | null;
}

interface Running extends Process {
  homes: Homes | null;
  outcomes: KeptOutcomes | null;
  ended: EndedLogs | null;
  disks: StatefulDisks | null;
  readonly storage: Storage;
  readonly clock: ProcessClock;
  readonly endpoint: Endpoint;
  isAlive: boolean;
}

/** Real operations under way (DT1). */
class DiskWork {
  #count = 0;
  #idle: PromiseWithResolvers<void> = Promise.withResolvers();

  get isBusy(): boolean {
    return this.#count > 0;
  }

  async settled(): Promise<void> {
    while (this.isBusy) await this.#idle.promise;
  }

  /** Time stands still while it lasts, and whoever ends a process waits for it. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await work();
    } finally {
      if (--this.#count === 0) {
        this.#idle.resolve();
        this.#idle = Promise.withResolvers();
      }
    }
  }

  over(storage: Storage): Storage {
    return {
      load: () => this.during(() => storage.load()),
      get: (key) => this.during(() => storage.get(key)),
      getMany: (keys) => this.during(() => storage.getMany(keys)),
      scan: (range, options) => this.during(() => storage.scan(range, options)),
      journal: (after, upTo, limit) => this.during(() => storage.journal(after, upTo, limit)),
      bytes: () => this.during(() => storage.bytes()),
      close: () => storage.close(),
      commit: (commit) => this.during(() => storage.commit(commit)),
    };
  }
}

export interface TreeOptions {
  /** Holds a folder for each site. */
  readonly folder: string;
  readonly f: number;
  readonly rootEngine: "denokv" | "sqlite";
  readonly seed: string;
}

/** Short times, so that owners are found in a moment of virtual time. */
const OWNERS = { nearMs: 0, beatMs: 100, suspectMs: 400, deadMs: 1_500 };
const USE = "homes";
const READY_MS = 20_000;

/** See the file's header. */
export class Tree {
  readonly world = new World();
  readonly network: SimNetwork;
  readonly #options: TreeOptions;
  readonly #draws: Draws;
  readonly #work = new DiskWork();
  readonly #running = new Map<SiteId, Running>();
  readonly #parents = new Map<SiteId, SiteId | null>(SITES.map(({ id, parent }) => [id, parent]));
  #starts = 0;
  /** Why a site does not run, or does not go on: its disk, or a broken rule. */
  readonly refusals = new Map<SiteId, Error>();
  /** Lines of the logs that matter to an operator. */
  readonly said: string[] = [];

  constructor(options: TreeOptions) {
    this.#options = options;
    this.#draws = new Draws(options.seed);
    this.network = new SimNetwork({
      world: this.world,
      draws: this.#draws.fork("network"),
      parentOf: (site) => this.#parents.get(site) ?? null,
      quality: () => ({ delayMs: [2, 3], lossChance: 0, bytesPerMs: Infinity }),
      window: 64,
      noticeMs: [0, 10],
      lateChance: 0,
    });
  }

  folderOf(site: SiteId): string {
    return join(this.#options.folder, site);
  }

  at(site: SiteId): Process | null {
    return this.#running.get(site) ?? null;
  }

  get up(): readonly TreeSite[] {
    return SITES.map(({ id }) => id).filter((id) => this.#running.has(id));
  }

  /** Lets virtual time pass, up to a moment at which `done` holds. */
  async pass(ms: number, done: () => boolean = () => false): Promise<boolean> {
    const untilMs = this.world.nowMs + ms;
    for (;;) {
      const isDone = await this.world.run(untilMs, () => this.#work.isBusy || done());
      if (!isDone) return false;
      if (!this.#work.isBusy) return true;
      await this.#work.settled();
    }
  }

  /** What a promise comes to; null: nothing, in that time. @throws what it rejects with. */
  async of<T>(promise: Promise<T>, ms = 8_000): Promise<{ readonly value: T } | null> {
    let outcome: { readonly value: T } | { readonly error: unknown } | null = null;
    promise.then((value) => outcome = { value }, (error) => outcome = { error });
    await this.pass(ms, () => outcome !== null);
    const done = outcome as { readonly value: T } | { readonly error: unknown } | null;
    if (done !== null && "error" in done) throw done.error;
    return done;
  }

  config(site: SiteId): SiteConfig {
    const parent = SITES.find(({ id }) => id === site)?.parent ?? null;
    return parseSiteConfig(
      {
        id: site,
        parent: parent === null ? null : { id: parent, url: `tcp://${parent}.test:1` },
        data: this.folderOf(site),
        secretFile: "secret",
        engine: parent === null ? this.#options.rootEngine : "sqlite",
        listen: { http: "127.0.0.1:0", link: "127.0.0.1:0" },
        f: this.#options.f,
        owners: OWNERS,
      },
      {},
      this.#options.folder,
    );
  }

  /** Starts a site over its folder, as a site starts; where its disk refuses, `refusals` says why. */
  async start(site: SiteId): Promise<void> {
    const { world, network } = this;
    this.refusals.delete(site);
    await Promise.all(this.#ending);
    let opened: { readonly config: SiteConfig; readonly storage: Storage };
    try {
      const config = await withParent(this.config(site));
      const { lost, renamed } = this.#damage(site);
      opened = { config, storage: (await openData(config, { lost, renamed })).storage };
    } catch (error) {
      this.#refuses(site, error);
      return;
    }
    const { config, storage } = opened, parent = config.parent?.id ?? null;
    this.#parents.set(site, parent);
    const clock = new ProcessClock(world, { skewMs: 0, drift: 0 });
    const draws = this.#draws.fork(`${site} ${++this.#starts}`);
    const core = new Core({
      ...{ site, parent, tier: config.tier, url: `http://${site}.test`, linkAddress: `${site}.test:1` },
      ...{ capacityBytes: config.capacityBytes, pendingBytesMax: config.pendingBytesMax },
      ...{ lost: config.parent?.lost ?? [], owners: ownersSettings(config) },
    }, {
      clock,
      random: draws,
      storage: this.#work.over(storage),
      network: {
        send: (to, message) =>
          running.isAlive ? network.send(running.endpoint, site, to, message) : Promise.resolve(),
      },
      fatal: (error) => running.isAlive && this.#refuses(site, error),
      owed: () => Infinity,
      note: (event, detail) => void this.said.push(`${site} ${event} ${JSON.stringify(detail ?? {})}`),
    });
    const replica = new SiteReplica(core);
    const endpoint: Endpoint = {
      connected: (other, role) => replica.connected(other, role),
      disconnected: (other) => replica.disconnected(other),
      unreachable: (other) => replica.unreachable(other),
      receive: (from, message) => replica.receive(from, message),
    };
    const running: Running = {
      ...{ replica, storage, clock, endpoint, isAlive: true },
      ...{ homes: null, outcomes: null, ended: null, disks: null },
    };
    this.#running.set(site, running);
    try {
      await this.of(replica.start());
    } catch (error) {
      return this.#refuses(site, error);
    }
    if (!running.isAlive) return;
    network.up(site, endpoint);
    replica.ready.then(() => this.#serve(site, running, config, draws)).catch((error) => {
      if (running.isAlive) this.#refuses(site, error);
    });
  }

  /** What a site opens once it is ready (runtime/site/stateful_service.ts). */
  async #serve(site: SiteId, running: Running, config: SiteConfig, draws: Draws): Promise<void> {
    const { replica, clock } = running, fatal = (error: Error) => this.#refuses(site, error);
    const disks = await this.#work.during(async () =>
      running.disks = await StatefulDisks.open({ config, clock, damage: this.#damage(site), fatal })
    );
    if (!running.isAlive) return;
    const loaded = <T>(load: () => Promise<T>): Promise<T> => this.#work.during(() => disks.loaded(load));
    const over = (storage: Storage) => this.#work.over(storage);
    const early: [SiteId, Uint8Array][] = [];
    const send = replica.owners.channel(USE, (from, packet) => {
      if (!running.isAlive) return;
      if (running.homes === null) early.push([from, packet]);
      else running.homes.received(from, packet);
    });
    const { owners } = replica;
    const homesPorts = (): Parameters<typeof Homes.open>[0] => ({
      ...{ site, clock, fatal, random: draws, boot: BOOT_MIN + draws.integer(0, 2 ** 40) },
      nowMs: () => clock.steadyMs(),
      storage: over(disks.homes),
      arbiterStorage: disks.arbiter === null ? null : over(disks.arbiter),
      arbiter: () => "cloud",
      send,
      fellows: {
        get f() {
          return owners.settings.f;
        },
        sites: () => [...replica.members.sites.keys()],
        choose: (kept, without, last) => owners.choose(owners.settings.f, kept, without, last),
        isKnown: (other) => owners.isKnown(other),
        standing: (other) => owners.detector.presence(other),
        watch: (other) => owners.detector.watch(other),
        onChange: (changed) => owners.detector.onPresence(changed),
        nearest: () => owners.nearest(),
        look: (other) => {
          if (this.network.isThere(site, other) === "refused") owners.detector.refused(other);
        },
      },
      due: () => {},
      note: (event, detail) => void this.said.push(`${site} ${event} ${JSON.stringify(detail)}`),
    });
    const homes = await loaded(() => Homes.open(homesPorts()));
    running.outcomes = await loaded(async () =>
      disks.outcomes === null
        ? null
        : await KeptOutcomes.open({ storage: over(disks.outcomes), clock, fatal })
    );
    running.ended = await loaded(() =>
      EndedLogs.open({
        storage: over(disks.ended),
        nowMs: () => clock.nowMs(),
        keptMsMax: 3_600_000,
        isApp: () => true,
        note: (event, detail) => void this.said.push(`${site} ${event} ${JSON.stringify(detail)}`),
      })
    );
    running.homes = homes;
    for (const [from, packet] of early) homes.received(from, packet);
  }

  /** Whether all that runs is ready, or has refused; waits for it. */
  settled(ms = READY_MS): Promise<boolean> {
    return this.pass(ms, () => [...this.#running.values()].every(({ homes }) => homes !== null));
  }

  #refuses(site: SiteId, error: unknown): void {
    if (this.refusals.has(site)) return;
    this.refusals.set(site, error instanceof Error ? error : new Error(String(error)));
    const running = this.#running.get(site);
    if (running !== undefined) this.#end(site, running);
    // As a site does (runtime/site/site.ts).
    if (error instanceof OlderDisk) {
      this.#ending.push(markOlder(join(this.folderOf(site), "store"), error.message));
    }
  }

  #damage(site: SiteId): DiskDamage {
    const line = (_level: string, event: string, fields: Record<string, unknown>) =>
      void this.said.push(`${site} ${event} ${JSON.stringify(fields)}`);
    return new DiskDamage({ line }, this.folderOf(site));
  }

  /** The process is gone; its files are as they are. */
  #end(site: SiteId, running: Running): void {
    running.isAlive = false;
    running.clock.stop();
    this.network.down(site);
    this.#running.delete(site);
    this.#ending.push(this.#let(running));
  }

  readonly #ending: Promise<void>[] = [];

  async #let(running: Running): Promise<void> {
    await this.#work.settled();
    await running.storage.close();
    await running.disks?.close();
  }

  /** All processes end at once, without a word; what they have on disk stays. */
  async killAll(): Promise<void> {
    for (const [site, running] of [...this.#running]) this.#end(site, running);
    await Promise.all(this.#ending);
  }

  /** A site stops in order. */
  async stop(site: SiteId): Promise<void> {
    const running = this.#running.get(site);
    if (running === undefined) return;
    if (running.homes !== null) await this.of(running.homes.close(500), 3_000);
    await this.of(running.outcomes?.close() ?? Promise.resolve(), 1_000);
    await this.of(running.replica.close(), 3_000);
    this.#end(site, running);
    await Promise.all(this.#ending);
  }
}
