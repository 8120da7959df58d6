/** Whether a process waits at a site for the sessions of others: what the pool is told of, and when. */
import assert from "node:assert/strict";
import type { KeptLog, LogNews, StatefulName } from "../../../functions/sessions/home/mod.ts";
import type { IsolateApp } from "../../../runtime/isolate/mod.ts";
import { Readiness } from "../../../runtime/stateful/readiness.ts";
import { HandClock } from "../../functions/sessions/attach/peer_pair.ts";

const appOf = (app: string): IsolateApp => ({ app, version: "v1" }) as unknown as IsolateApp;
const BEGUN: LogNews = { kind: "begun", isSame: true };
const MINUTE_MS = 60_000;

/** A site whose disk has logs, and a pool that remembers what it is told. */
class Site {
  readonly clock = new HandClock();
  logs: KeptLog[] = [];
  isolates = 0;
  /** Apps whose code is not here. */
  readonly unknown = new Set<string>();
  readonly told: string[] = [];
  readonly readiness: Readiness;
  looks = 0;

  constructor(logs: KeptLog[] = []) {
    this.logs = logs;
    const looked = () => {
      this.looks++;
      return this.logs;
    };
    this.readiness = new Readiness({
      ...{ site: "edge-1", clock: this.clock, logs: { all: looked } },
      pool: {
        expect: (apps) => void this.#tell(`expect ${apps.map(({ app }) => app).join()}`),
        release: () => this.#tell("release"),
        status: () => ({ isolates: this.isolates, sessions: 0 }),
      },
      appOf: (app) => this.unknown.has(app) ? undefined : appOf(app),
      hasStandby: ({ class: className }) => className === "standing",
    });
  }

  /** What is told again and again counts once. */
  #tell(line: string): void {
    if (this.told.at(-1) !== line) this.told.push(line);
  }

  /** A log begins on its disk. */
  keep(log: KeptLog): void {
    this.logs.push(log);
    this.readiness.onLog(log, BEGUN);
  }
}

const log = (by: string, app = "shop", className = "card"): KeptLog =>
  ({ name: { app, class: className, id: "ann" } satisfies StatefulName, head: { by } }) as unknown as KeptLog;

Deno.test("a site waits for others' sessions a while after it keeps the first log of theirs (RD1)", () => {
  const site = new Site();
  site.keep(log("edge-2"));
  site.keep(log("edge-2"));
  site.clock.turn(1_000);
  assert.deepEqual([site.told, site.looks], [[], 0]);
  site.clock.turn(1_500);
  assert.deepEqual([site.told, site.looks], [["expect shop"], 1]);
  // It is told once: logs come and go without its disk being looked through.
  for (let i = 0; i < 100; i++) {
    site.keep(log("edge-2"));
    site.clock.turn(10);
  }
  assert.equal(site.looks, 1);
});

Deno.test("a site that had logs of others when it started waits for them, too, a while later", () => {
  const site = new Site([log("edge-2")]);
  site.clock.turn(5_000);
  assert.deepEqual(site.told, []);
  site.clock.turn(10_000);
  assert.deepEqual(site.told, ["expect shop"]);
});

Deno.test("nothing waits for a site's own sessions, for those with standbys, and for apps that are not here (RD2)", () => {
  const site = new Site();
  site.unknown.add("bank");
  site.keep(log("edge-1"));
  site.keep(log("edge-2", "shop", "standing"));
  site.keep(log("edge-2", "bank"));
  site.clock.turn(MINUTE_MS);
  assert.deepEqual(site.told, ["expect "]);
  site.unknown.clear(); // it has come
  site.clock.turn(MINUTE_MS);
  assert.deepEqual(site.told, ["expect ", "expect bank"]);
});

Deno.test("apps of others' sessions are told as far as it matters how many there are", () => {
  const site = new Site([log("edge-2", "a"), log("edge-2", "b"), log("edge-2", "c")]);
  site.clock.turn(MINUTE_MS);
  assert.deepEqual(site.told, ["expect a,b"]);
});

Deno.test("what waits is let go of when there was no log and no isolate for ten minutes, and comes back (RD3)", () => {
  const site = new Site();
  site.keep(log("edge-2"));
  site.clock.turn(MINUTE_MS);
  site.logs = [log("edge-1")]; // its own now
  site.clock.turn(20 * MINUTE_MS);
  assert.deepEqual(site.told, ["expect shop", "expect "]);
  site.logs = [];
  site.isolates = 1;
  site.clock.turn(20 * MINUTE_MS);
  assert.deepEqual(site.told, ["expect shop", "expect "]);
  site.isolates = 0;
  site.clock.turn(9 * MINUTE_MS);
  assert.deepEqual(site.told, ["expect shop", "expect "]);
  site.clock.turn(2 * MINUTE_MS);
  assert.ok(site.told.includes("release"), `${site.told}`);
  site.told.length = 0;
  site.keep(log("edge-2"));
  site.clock.turn(3_000);
  assert.deepEqual(site.told, ["expect shop"]);
});

Deno.test("a site that stops begins nothing more", () => {
  const site = new Site();
  site.keep(log("edge-2"));
  site.readiness.close();
  site.keep(log("edge-2"));
  site.clock.turn(MINUTE_MS);
  assert.deepEqual(site.told, []);
});
