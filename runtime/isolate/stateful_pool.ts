/**
 * The isolates of a site's stateful sessions: for each app version as many as it needs, apart from those that answer
 * requests.
 *
 * Life: constructed (nothing runs) → `open` starts a process where the version has none with room → one without
 * sessions is given back after a while → `close`.
 *
 * P1  A session is opened in an isolate of exactly the version that was named.
 * P2  After `close` no process that this pool started is left.
 * P3  An isolate that is to share the work with others, and does not start, is noted; the sessions that there are go
 *     on, and the next has another started.
 * P4  Each isolate draws versions from a share of the site's clock that no other of the site has meanwhile; so there
 *     may be as many isolates as there are shares.
 */
import { strict as assert } from "node:assert";
import { CLOCK_SHARES, ClockShares } from "../../store/model/clock_share.ts";
import type { SiteQueues } from "./app_queues.ts";
import type { OpenSession } from "../../functions/sessions/turn/mod.ts";
import { messageOf } from "./bodies.ts";
import type { IsolateApp } from "./call.ts";
import type { ChannelSink, FollowedChannel, OpenChannel } from "../../functions/sessions/serve/ports.ts";
import { DEFAULT_ISOLATE_LIMITS, STATEFUL_BUFFERS_MIB } from "./limits.ts";
import type { IsolateProcess } from "./process.ts";
import { ProcessStarter, type ProcessStarterOptions } from "./process_starter.ts";
import { SpareIsolate } from "./spare_isolate.ts";
import { StatefulIsolate, type StrayLog } from "./stateful_isolate.ts";

/** Options of a site's isolates of stateful sessions. */
export interface StatefulPoolOptions extends ProcessStarterOptions {
  readonly site: string;
  /** Queues of all apps at this site. */
  readonly queues?: SiteQueues;
  /** Milliseconds without sessions after which an isolate is given back. */
  readonly idleMs?: number;
  /**
   * True where a process is to wait for the loss of an isolate, once there was one, and for what `expect` names: some
   * 40 MiB.
   */
  readonly hasSpare?: boolean;
  /** Shares of the site's clock: all pools of a site have the same. */
  readonly clockShares?: ClockShares;
  /** Number of sessions of an isolate beyond which another is started; SESSIONS_A_CORE by default. */
  readonly sessionsEach?: number;
  /** Takes lines that belong to no session. */
  readonly log: (app: IsolateApp, level: string, text: string) => void;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** The error where no isolate of a version could be opened. */
export class StatefulLoadError extends Error {
  override readonly name = "StatefulLoadError";
  /** @param trace stack of the error that the app threw; "" where it threw none. */
  constructor(readonly code: string, message: string, readonly trace = "") {
    super(message);
  }
}

interface Fleet {
  readonly app: IsolateApp;
  readonly isolates: Set<StatefulIsolate>;
  /** An isolate that is being opened; sessions that are opened meanwhile share it. */
  opening: Promise<StatefulIsolate> | null;
  usedMs: number;
}

const IDLE_MS = 60_000;
/**
 * Milliseconds until a spare is started: a process that starts takes the CPU from what came with the isolate before.
 */
const SPARE_AFTER_MS = 300;
/** Number of sessions beyond which another process shares the work, where the version may have one. */
const SESSIONS_A_CORE = 500;

/** The isolates of a site's stateful sessions; see the file's header. */
export class StatefulPool {
  readonly #options: StatefulPoolOptions;
  readonly #fleets = new Map<string, Fleet>();
  readonly #starting = new Set<Promise<unknown>>();
  readonly #alone = new Set<StatefulIsolate>();
  readonly #processes: ProcessStarter;
  readonly #spare: SpareIsolate;
  readonly #clockShares: ClockShares;
  /** Apps that `expect` named, by the names of fleets. */
  #expected: ReadonlyMap<string, IsolateApp> = new Map();
  #timer: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(options: StatefulPoolOptions) {
    this.#options = options;
    this.#clockShares = options.clockShares ?? new ClockShares(0);
    this.#processes = new ProcessStarter(options);
    this.#spare = new SpareIsolate({
      start: (sizes, givesWay) => this.#processes.start("stateful", sizes, givesWay),
      load: (process, app, log) => this.#load(process, app, log),
      likely: () => this.#likely(),
      afterMs: SPARE_AFTER_MS,
    });
  }

  /**
   * Opens a session in an isolate of the version; `sink` is told what becomes of it.
   *
   * @throws StatefulLoadError
   */
  async open(app: IsolateApp, session: OpenSession, sink: ChannelSink): Promise<OpenChannel> {
    const isolate = await this.#isolate(app);
    return { isolate, channel: isolate.open(session, sink) };
  }

  /**
   * Starts an isolate of the version where none has room: the next session to be opened finds it, or its start under
   * way.
   */
  prepare(app: IsolateApp): void {
    this.#isolate(app).catch(() => {}); // the next to open a session is told why
  }

  /**
   * Names apps whose sessions may have to be opened here at any time, in haste: one process waits for that, with the
   * app where there is but one. It stays when nothing is expected any more (`release`).
   */
  expect(apps: readonly IsolateApp[]): void {
    this.#expected = new Map(apps.map((app) => [nameOf(app), fitted(app)]));
    const [first] = this.#expected.values();
    if (first === undefined || this.#options.hasSpare !== true) return;
    const { heapMib, buffersMib } = first.limits;
    this.#spare.keep({ heapMib, buffersMib });
  }

  /** Ends the process that waits: none does until a session is opened here or expected. */
  release(): void {
    this.#expected = new Map();
    this.#spare.release();
  }

  /**
   * Starts an isolate of the version that no other session is opened in; the caller closes it.
   *
   * @throws StatefulLoadError
   */
  async openAlone(app: IsolateApp): Promise<StatefulIsolate> {
    const started = this.#startIsolate(app, () => {});
    this.#starting.add(started);
    started.catch(() => {}).finally(() => this.#starting.delete(started));
    const isolate = await started;
    this.#alone.add(isolate);
    void isolate.ended.then(() => this.#alone.delete(isolate));
    return isolate;
  }

  /**
   * Follows a session that another site runs, in an isolate of the version.
   *
   * @throws StatefulLoadError
   */
  async follow(app: IsolateApp, session: OpenSession, sink: ChannelSink): Promise<FollowedChannel> {
    const isolate = await this.#isolate(app);
    return { isolate, channel: isolate.follow(session, sink) };
  }

  /**
   * Checks that a bundle's module code runs where stateful sessions do, which have less than functions while they load.
   *
   * @throws StatefulLoadError
   */
  async tryLoad(bundle: Uint8Array): Promise<void> {
    const isolate = await this.openAlone({
      ...{ app: "evaluated", version: "", vars: {}, fetchHosts: [], limits: DEFAULT_ISOLATE_LIMITS },
      bundle: () => Promise.resolve(bundle),
    });
    await isolate.close();
  }

  /** Tells an app's isolates that its secrets have changed: what begins there from now on sees the new values. */
  refreshSecrets(app: string): void {
    this.#spare.refreshSecrets(app);
    for (const fleet of this.#fleets.values()) {
      if (fleet.app.app === app) { for (const isolate of fleet.isolates) isolate.refreshSecrets(); }
    }
  }

  /** Returns the numbers of isolates and sessions, for status and metrics. */
  status(): { readonly isolates: number; readonly sessions: number } {
    let isolates = 0, sessions = 0;
    for (const fleet of this.#fleets.values()) {
      for (const isolate of fleet.isolates) {
        isolates++;
        sessions += isolate.size;
      }
    }
    return { isolates, sessions };
  }

  /** Ends every isolate (P2). */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await Promise.allSettled(this.#starting);
    await this.#spare.close();
    const all = [...this.#fleets.values()].flatMap((fleet) => [...fleet.isolates]);
    all.push(...this.#alone);
    await Promise.all(all.map((isolate) => isolate.close()));
    await this.#processes.close();
  }

  /** Checks that the pool is open: after `close` nothing is begun, no timer either (P2). @throws StatefulLoadError */
  #checkOpen(): void {
    if (this.#closed) throw new StatefulLoadError("overloaded", "the site is stopping");
  }

  async #isolate(app: IsolateApp): Promise<StatefulIsolate> {
    this.#checkOpen();
    const fleet = this.#fleet(app);
    fleet.usedMs = performance.now();
    let best: StatefulIsolate | undefined;
    for (const isolate of fleet.isolates) {
      if (!isolate.isOver && (best === undefined || isolate.size < best.size)) best = isolate;
    }
    const mayGrow = fleet.isolates.size < app.limits.isolatesMax;
    if (best !== undefined && (best.size < (this.#options.sessionsEach ?? SESSIONS_A_CORE) || !mayGrow)) {
      return best;
    }
    const opening = fleet.opening ??= this.#opening(fleet, best !== undefined);
    return best ?? await opening;
  }

  #opening(fleet: Fleet, isBehind: boolean): Promise<StatefulIsolate> {
    const opening = this.#start(fleet).finally(() => fleet.opening = null);
    // P3
    opening.catch((error) => {
      const { app, version } = fleet.app;
      if (isBehind) this.#options.note("stateful_isolate_failed", { app, version, why: messageOf(error) });
    });
    return opening;
  }

  #fleet(app: IsolateApp): Fleet {
    const name = nameOf(app);
    let fleet = this.#fleets.get(name);
    if (fleet === undefined) {
      fleet = { app: fitted(app), isolates: new Set(), opening: null, usedMs: 0 };
      this.#fleets.set(name, fleet);
      this.#timer ??= setInterval(() => this.#giveBack(), this.#idleMs / 4);
    }
    return fleet;
  }

  /**
   * Returns the app that the next isolate is for, where there is but one; with several it would mostly be the wrong
   * one, which helps as little as none.
   */
  #likely(): IsolateApp | null {
    const names = new Set([...this.#fleets.keys(), ...this.#expected.keys()]);
    const [name] = names;
    if (name === undefined || names.size > 1) return null;
    return this.#fleets.get(name)?.app ?? this.#expected.get(name) ?? null;
  }

  get #idleMs(): number {
    return this.#options.idleMs ?? IDLE_MS;
  }

  #giveBack(): void {
    const beforeMs = performance.now() - this.#idleMs;
    for (const [name, fleet] of this.#fleets) {
      if (fleet.opening !== null || fleet.usedMs > beforeMs) continue;
      for (const isolate of fleet.isolates) if (isolate.size === 0) void isolate.close();
      if (fleet.isolates.size === 0) this.#fleets.delete(name);
    }
  }

  #start(fleet: Fleet): Promise<StatefulIsolate> {
    const started = this.#startOne(fleet);
    this.#starting.add(started);
    started.catch(() => {}).finally(() => this.#starting.delete(started));
    return started;
  }

  async #startOne(fleet: Fleet): Promise<StatefulIsolate> {
    const { app } = fleet;
    const log = (level: string, text: string) => this.#options.log(app, level, text);
    const isolate = await this.#startIsolate(app, log, this.#options.hasSpare === true);
    assert(nameOf(isolate.app) === nameOf(app), "P1: sessions run in the version that was named");
    this.#watch(fleet, isolate);
    return isolate;
  }

  async #startIsolate(app: IsolateApp, log: StrayLog, maySpare = false): Promise<StatefulIsolate> {
    this.#checkOpen();
    try {
      const givesWay = this.#options.queues?.of(app.app).cores.givesWay ?? false;
      if (!maySpare) {
        return await this.#load(await this.#processes.start("stateful", app.limits, givesWay), app, log);
      }
      const spare = await this.#spare.take(app, log, givesWay);
      return spare.kind === "loaded" ? spare.isolate : await this.#load(spare.process, app, log);
    } catch (error) {
      if (error instanceof StatefulLoadError) throw error;
      throw new StatefulLoadError("load_failed", messageOf(error));
    }
  }

  /**
   * Gives a process its app; where that fails the process has ended. @throws StatefulLoadError, and what reading its
   * bundle throws
   */
  async #load(process: IsolateProcess, app: IsolateApp, log: StrayLog): Promise<StatefulIsolate> {
    const isolate = new StatefulIsolate(process, app, log, this.#options.queues?.of(app.app));
    const share = this.#clockShares.take();
    if (share !== null) void isolate.ended.then(() => this.#clockShares.give(share));
    try {
      if (share === null) { // P4
        throw new StatefulLoadError(
          "overloaded",
          `${CLOCK_SHARES} isolates of stateful sessions run here already`,
        );
      }
      const outcome = await isolate.load(await app.bundle(), { site: this.#options.site, clockShare: share });
      if (outcome.kind === "loaded") return isolate;
      throw new StatefulLoadError(outcome.code, outcome.message, outcome.stack);
    } catch (error) {
      await isolate.close();
      throw error;
    }
  }

  #watch(fleet: Fleet, isolate: StatefulIsolate): void {
    fleet.isolates.add(isolate);
    isolate.ended.then((end) => {
      fleet.isolates.delete(isolate);
      if (end.isPlanned) return;
      const { app, version } = fleet.app;
      this.#options.note("stateful_isolate_ended", { app, version, pid: isolate.pid, why: end.why });
    });
  }
}

const nameOf = ({ app, version }: IsolateApp): string => `${app} ${version}`;

/** Returns the app with the sizes that isolates of stateful sessions have at least. */
function fitted(app: IsolateApp): IsolateApp {
  const buffersMib = Math.max(app.limits.buffersMib, STATEFUL_BUFFERS_MIB);
  return { ...app, limits: { ...app.limits, buffersMib } };
}
