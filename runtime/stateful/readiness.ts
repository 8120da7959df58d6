/**
 * Whether a process waits at this site for the stateful sessions of others: who keeps the log of one is who opens it when
 * its home is lost, and to start a process would be most of what that takes.
 *
 * Life: nothing → this disk begins to keep a log that another site writes → a while later one process waits, for all
 * such sessions together → there has been no log here, and no isolate, for long → nothing.
 *
 * RD1  Nothing waits for it: no message, and not the start of the site, a while after which logs are looked for.
 * RD2  Classes with a standby need none: where such a session is run along, it is taken over.
 * RD3  What waits because sessions ran here stays as long as a log rests here, whoever wrote it.
 */
import type { Followable, KeptLog, LogNews, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { IsolateApp, StatefulPool } from "../isolate/mod.ts";
import { SYSTEM_CLOCK } from "./clock.ts";

/** What it needs of its site. */
export interface ReadinessServices {
  readonly site: string;
  readonly logs: Pick<Followable, "all">;
  readonly pool: Pick<StatefulPool, "expect" | "release" | "status">;
  /** What the isolates of an app's stateful sessions are opened with; undefined: it is not here. */
  readonly appOf: (app: string) => IsolateApp | undefined;
  /** RD2 */
  readonly hasStandby: (name: StatefulName) => boolean;
  /** The system's, where it is left out. */
  readonly clock?: PeerClock;
}

/** By then what began the session is done. */
const SOON_MS = 2_000;
/** By then a site that starts has its links, and has brought its rows up to date. */
const START_MS = 10_000;
/** Apps get other versions, and processes end: looked at so often. 200,000 logs take some milliseconds. */
const SWEEP_MS = 30_000;
/** Sessions come and go more often than it is worth to start a process for. */
const NOTHING_MS = 10 * 60_000;
/** Beyond one app what waits has none of them. */
const APPS_MAX = 2;

/** See the file's header. */
export class Readiness {
  readonly #services: ReadinessServices;
  readonly #clock: PeerClock;
  #cancel: () => void = () => {};
  #isSoon = false;
  /** Whether this disk keeps what somebody may ask for here; looked for only now and then. */
  #expects = false;
  /** When there was something last. */
  #lastMs: number;

  constructor(services: ReadinessServices) {
    this.#services = services;
    this.#clock = services.clock ?? SYSTEM_CLOCK;
    this.#lastMs = this.#clock.nowMs();
    this.#sweepIn(START_MS); // RD1
  }

  /** A log on this disk is other than before. */
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

  /** The apps of others' sessions, of the first that are found, and whether there is any log at all (RD3). */
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
