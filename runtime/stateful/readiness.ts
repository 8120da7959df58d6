/**
 * Readiness of a process at this site for the stateful sessions of others: a site that keeps the log of one opens it
 * when its home is lost, and to start a process would be most of what that takes.
 *
 * Life: nothing → this disk begins to keep a log that another site writes → a while later one process waits, for all
 * such sessions together → there has been no log here, and no isolate, for long → nothing.
 *
 * RD1  Nothing waits for it: no message, and not the start of the site, a while after which logs are looked for.
 * RD2  Classes with a standby need none: where such a session is run along, it is taken over.
 * RD3  A process that waits because sessions ran here stays as long as any site's log rests here.
 */
import type { Followable, KeptLog, LogNews, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { IsolateApp, StatefulPool } from "../isolate/mod.ts";
import { SYSTEM_CLOCK } from "./clock.ts";

/** Site, as readiness needs it. */
export interface ReadinessServices {
  readonly site: string;
  readonly logs: Pick<Followable, "all">;
  readonly pool: Pick<StatefulPool, "expect" | "release" | "status">;
  /** Returns what the isolates of an app's stateful sessions are opened with; undefined: the app is not here. */
  readonly appOf: (app: string) => IsolateApp | undefined;
  /** Reports whether a session has a standby here (RD2). */
  readonly hasStandby: (name: StatefulName) => boolean;
  /** Clock; left out: the system's. */
  readonly clock?: PeerClock;
}

/** Milliseconds after which what began the session is done. */
const SOON_MS = 2_000;
/** Milliseconds after which a site that starts has its links, and has brought its rows up to date. */
const START_MS = 10_000;
/** Interval of looks: apps get other versions, and processes end. 200,000 logs take some milliseconds. */
const SWEEP_MS = 30_000;
/**
 * Milliseconds without a log after which nothing is kept ready: sessions come and go more often than starting a process
 * is worth.
 */
const NOTHING_MS = 10 * 60_000;
/** Apps that are looked for: beyond one, the process that waits has none of them. */
const APPS_MAX = 2;

/** Readiness for sessions of others (see the file's header). */
export class Readiness {
  readonly #services: ReadinessServices;
  readonly #clock: PeerClock;
  #cancel: () => void = () => {};
  #isSoon = false;
  /** True where this disk keeps logs of sessions that may be asked for here; looked for only now and then. */
  #expects = false;
  /** Time at which there was something last. */
  #lastMs: number;

  constructor(services: ReadinessServices) {
    this.#services = services;
    this.#clock = services.clock ?? SYSTEM_CLOCK;
    this.#lastMs = this.#clock.nowMs();
    this.#sweepIn(START_MS); // RD1
  }

  /** Notes that a log on this disk has changed. */
  onLog({ head }: KeptLog, { kind }: LogNews): void {
    if (kind !== "begun" || this.#expects || this.#isSoon || head.by === this.#services.site) return;
    this.#isSoon = true;
    this.#sweepIn(SOON_MS);
  }

  close(): void {
    this.#isSoon = true;
    this.#cancel();
  }

  #sweepIn(ms: number): void {
    this.#cancel();
    this.#cancel = this.#clock.after(ms, () => {
      this.#isSoon = false;
      this.#sweepIn(SWEEP_MS);
      this.#sweep();
    });
  }

  #sweep(): void {
    const { pool } = this.#services, nowMs = this.#clock.nowMs();
    const { apps, hasLogs } = this.#kept();
    this.#expects = apps.length > 0;
    pool.expect(apps);
    if (hasLogs || pool.status().isolates > 0) this.#lastMs = nowMs;
    else if (nowMs - this.#lastMs >= NOTHING_MS) pool.release();
  }

  /** Returns the apps of others' sessions, of the first that are found, and whether there is any log at all (RD3). */
  #kept(): { readonly apps: readonly IsolateApp[]; readonly hasLogs: boolean } {
    const { site, logs, appOf, hasStandby } = this.#services;
    const apps = new Map<string, IsolateApp>();
    let hasLogs = false;
    for (const { name, head } of logs.all()) {
      hasLogs = true;
      if (head.by === site || apps.has(name.app) || hasStandby(name)) continue; // RD2
      const app = appOf(name.app);
      if (app !== undefined) apps.set(name.app, app);
      if (apps.size === APPS_MAX) break;
    }
    return { apps: [...apps.values()], hasLogs };
  }
}
