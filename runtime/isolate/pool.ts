/**
 * All isolates of a site: spare processes that wait for an app, and a fleet per app version. App code runs there only,
 * never in the site's own process.
 *
 * Life cycle: constructed (nothing runs) → first `start` or `call` (bootstrap bundled, spares started) → `close`.
 *
 * O2  After `close` no process that this pool started is left.
 */
import { messageOf } from "./bodies.ts";
import type { IsolateAnswer } from "./answer.ts";
import { type IsolateApp, type IsolateCall, type PendingCall, prepareCall } from "./call.ts";
import { SiteQueues } from "./app_queues.ts";
import { HostEgress } from "./egress.ts";
import { type EgressOptions, EgressRules } from "./egress_rules.ts";
import { Fleet, type OpenOutcome } from "./fleet.ts";
import type { IsolateEnd, LoadOutcome } from "./app_process.ts";
import { bootstrapFile } from "./bootstrap_file.ts";
import { Isolate, type IsolateOwner } from "./isolate.ts";
import { DEFAULT_ISOLATE_LIMITS } from "./limits.ts";
import type { IsolateProcess } from "./process.ts";
import { ProcessStarter, type ProcessStarterOptions } from "./process_starter.ts";
import { Spares } from "./spares.ts";
import { Watchdog } from "./watchdog.ts";

/** Options of a site's isolates. */
export interface PoolOptions extends ProcessStarterOptions {
  /** Number of processes that wait with no app. */
  readonly spares?: number;
  /** Milliseconds without requests after which an app version gives its isolates back. */
  readonly idleMs?: number;
  /** Queues of all apps at this site; shared with whatever else runs the site's apps. */
  readonly queues?: SiteQueues;
  /** Rules of the operator for what apps may fetch (egress_rules.ts). */
  readonly egress?: Omit<EgressOptions, "fetchHosts">;
  /** Told of every isolate that began to serve, and of every end. */
  readonly observer?: PoolObserver;
  /** Takes rare events that are worth a log line. */
  readonly note?: (event: string, detail: Record<string, unknown>) => void;
}

/** The part of a site that counts isolates. */
export interface PoolObserver {
  /** Called when an isolate serves, so long after it was wanted. */
  opened(app: IsolateApp, ms: number): void;
  ended(app: IsolateApp, end: IsolateEnd): void;
}

/** Counts of a site's spares and isolates, by app version. */
export interface PoolStatus {
  readonly spares: number;
  readonly apps: readonly {
    readonly app: string;
    readonly version: string;
    readonly isolates: readonly { readonly pid: number; readonly running: number }[];
  }[];
}

/** The outcome of evaluating a bundle. */
export type BundleEvaluation =
  | { readonly kind: "manifest"; readonly manifest: unknown }
  | { readonly kind: "error"; readonly code: string; readonly message: string; readonly stack: string };

const SPARES = 1;
/**
 * Milliseconds of the site's thread that the start and the end of an isolate take, as measured: an app whose isolates
 * end pays for them (AT1).
 */
const START_MS = 3;
/**
 * Milliseconds without requests after which isolates are given back: long enough for a person between two clicks, short
 * enough that yesterday's apps hold no memory.
 */
const IDLE_MS = 60_000;

/** All isolates of a site that answer requests. */
export class IsolatePool {
  readonly #options: PoolOptions;
  readonly #fleets = new Map<string, Fleet>();
  readonly #processes: ProcessStarter;
  readonly #spares: Spares;
  readonly #watchdog: Watchdog;
  readonly #queues: SiteQueues;
  /** Isolates that have or get a bundle. */
  readonly #loaded = new Set<Isolate>();
  readonly #openings = new Set<Promise<unknown>>();
  #idleTimer: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(options: PoolOptions = {}) {
    this.#options = options;
    this.#queues = options.queues ?? new SiteQueues();
    this.#processes = new ProcessStarter(options);
    this.#spares = new Spares(options.spares ?? SPARES, this.#processes);
    this.#watchdog = new Watchdog({
      revived: (isolate) => this.#fleetOf(isolate)?.freed(isolate),
      busy: (isolate) => this.#fleetOf(isolate)?.grow(),
    });
  }

  /** Bundles the bootstraps and starts the spares, before there is a call. */
  async start(): Promise<void> {
    await Promise.all([this.#spares.ready(), bootstrapFile("evaluate", this.#options.cacheFolder)]);
  }

  /** Opens an isolate of a version before its first request. */
  warm(app: IsolateApp): void {
    if (!this.#closed) this.#fleet(app).warm();
  }

  /**
   * Returns the reason why a request of the app's version that came now would be sent away; null where it would not.
   */
  refusal(app: IsolateApp): string | null {
    return this.#fleets.get(fleetName(app))?.refusal(performance.now()) ?? null;
  }

  /** Runs a request in an isolate of the app's version. Never rejects: a failure is an answer too. */
  call(app: IsolateApp, call: IsolateCall): Promise<IsolateAnswer> {
    const prepared = prepareCall(app, call);
    if (!(prepared instanceof Promise)) return this.#submit(prepared);
    return prepared.then((pending) => this.#submit(pending), (error) => ({
      kind: "error",
      code: "app_error",
      message: `the request could not be read: ${messageOf(error)}`,
    }));
  }

  #submit(pending: PendingCall): Promise<IsolateAnswer> {
    if (this.#closed) pending.fail("overloaded", "the site is stopping");
    if (!pending.answered) this.#fleet(pending.app).submit(pending);
    return pending.answer;
  }

  /** Runs a bundle's module code in an isolate, for its manifest (unchecked: see functions/manifest.ts). */
  evaluate(
    bundle: Uint8Array,
    options: { loadMs?: number; vars?: Record<string, string> } = {},
  ): Promise<BundleEvaluation> {
    return this.#tracked(this.#evaluate(bundle, options));
  }

  async #evaluate(
    bundle: Uint8Array,
    options: { readonly loadMs?: number; readonly vars?: Record<string, string> },
  ): Promise<BundleEvaluation> {
    const app: IsolateApp = {
      app: "evaluated",
      version: "",
      bundle: () => Promise.resolve(bundle),
      limits: { ...DEFAULT_ISOLATE_LIMITS, loadMs: options.loadMs ?? DEFAULT_ISOLATE_LIMITS.loadMs },
      vars: options.vars ?? {},
      fetchHosts: [],
    };
    let isolate: Isolate | undefined;
    try {
      const process = await this.#processes.start("evaluate", DEFAULT_ISOLATE_LIMITS);
      isolate = this.#isolate(process, app, { freed: () => {}, ended: () => {} });
      const outcome = await this.#load(isolate, bundle, true);
      return outcome.kind === "loaded"
        ? { kind: "manifest", manifest: outcome.manifest }
        : { ...outcome, kind: "error" };
    } catch (error) {
      return { kind: "error", code: "load_failed", message: messageOf(error), stack: "" };
    } finally {
      await isolate?.close();
    }
  }

  /** Tells an app's isolates that its secrets have changed: what begins there from now on sees the new values. */
  refreshSecrets(app: string): void {
    for (const isolate of this.#loaded) if (isolate.app.app === app) isolate.refreshSecrets();
  }

  /** Gives a version's isolates back at once, for example when it has been replaced and is idle. */
  async release(app: { readonly app: string; readonly version: string }): Promise<void> {
    const name = fleetName(app);
    const fleet = this.#fleets.get(name);
    this.#fleets.delete(name);
    await fleet?.close();
  }

  status(): PoolStatus {
    const apps = [...this.#fleets.values()].map((fleet) => ({
      app: fleet.app.app,
      version: fleet.app.version,
      isolates: [...fleet.isolates].map((isolate) => ({ pid: isolate.pid, running: isolate.exchanges.size })),
    }));
    return { spares: this.#spares.count, apps };
  }

  /** Ends every isolate (O2). */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#idleTimer);
    this.#watchdog.close();
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet.close()));
    await Promise.all([...this.#loaded].map((isolate) => isolate.close()));
    await this.#spares.close();
    await Promise.allSettled(this.#openings);
    await this.#processes.close();
  }

  #fleet(app: IsolateApp): Fleet {
    const name = fleetName(app);
    let fleet = this.#fleets.get(name);
    if (fleet === undefined) {
      fleet = new Fleet(app, (app, owner) => this.#tracked(this.#open(app, owner)));
      this.#fleets.set(name, fleet);
      this.#idleTimer ??= setInterval(() => this.#giveBack(), this.#idleMs / 4);
    }
    return fleet;
  }

  #fleetOf(isolate: Isolate): Fleet | undefined {
    for (const fleet of this.#fleets.values()) if (fleet.isolates.has(isolate)) return fleet;
    return undefined;
  }

  get #idleMs(): number {
    return this.#options.idleMs ?? IDLE_MS;
  }

  #giveBack(): void {
    const beforeMs = performance.now() - this.#idleMs;
    for (const [name, fleet] of this.#fleets) {
      if (!fleet.isIdle || fleet.usedMs > beforeMs) continue;
      this.#fleets.delete(name);
      fleet.close();
    }
  }

  /** Keeps an opening until it is over: `close` waits for those under way (O2). */
  #tracked<T>(opening: Promise<T>): Promise<T> {
    this.#openings.add(opening);
    return opening.finally(() => this.#openings.delete(opening));
  }

  async #open(app: IsolateApp, owner: IsolateOwner): Promise<OpenOutcome> {
    let isolate: Isolate | undefined;
    const begunMs = performance.now();
    try {
      const fetched = app.bundle();
      fetched.catch(() => {});
      const { cores, turns } = this.#queues.of(app.app);
      turns.spend(START_MS);
      isolate = this.#isolate(await this.#spares.take(app.limits, cores.givesWay), app, owner);
      const outcome = await this.#load(isolate, await fetched, false);
      if (outcome.kind === "loaded") {
        this.#options.observer?.opened(app, performance.now() - begunMs);
        return { kind: "isolate", isolate };
      }
      await isolate.close();
      return outcome;
    } catch (error) {
      await isolate?.close();
      return { kind: "failed", code: "load_failed", message: messageOf(error), stack: "" };
    } finally {
      this.#spares.refillSoon();
    }
  }

  #isolate(process: IsolateProcess, app: IsolateApp, owner: IsolateOwner): Isolate {
    const rules = new EgressRules({ ...this.#options.egress, fetchHosts: app.fetchHosts });
    const egress = new HostEgress(rules, app.assets);
    return new Isolate(process, { app, owner, egress, queues: this.#queues.of(app.app) });
  }

  /** Loads a bundle; an isolate that serves then is watched. @throws Error when the pool is closed (O2). */
  async #load(isolate: Isolate, bundle: Uint8Array, evaluate: boolean): Promise<LoadOutcome> {
    if (this.#closed) throw new Error("the site is stopping");
    const { app, pid } = isolate;
    this.#loaded.add(isolate);
    isolate.ended.then((end) => {
      this.#loaded.delete(isolate);
      if (!evaluate) this.#options.observer?.ended(app, end);
      if (end.kind === "closed") return;
      this.#options.note?.("isolate ended", { app: app.app, version: app.version, pid, why: end.why });
    });
    const outcome = await isolate.load(bundle);
    if (outcome.kind === "loaded" && !evaluate) this.#watchdog.watch(isolate, app.limits);
    return outcome;
  }
}

const fleetName = (app: { readonly app: string; readonly version: string }): string =>
  `${app.app} ${app.version}`;
