/** Standbys: what they follow, what they drop, and how they become homes; without isolates or other sites. */
import assert from "node:assert/strict";
import type {
  Followable,
  FollowedLog,
  KeptLog,
  LogNews,
  StatefulName,
} from "../../../../functions/sessions/home/mod.ts";
import type { OpenSession, Promotion } from "../../../../functions/sessions/turn/mod.ts";
import type { ChannelSink } from "../../../../functions/sessions/serve/ports.ts";
import { NO_HEAD, wrapPiece } from "../../../../functions/sessions/serve/pieces.ts";
import { StandbyFailed } from "../../../../functions/sessions/serve/standby.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { Standbys } from "../../../../functions/sessions/serve/standbys.ts";

const NAME: StatefulName = { app: "shop", class: "card", id: "ann" };
const SEED = new Uint8Array(32);

const piece = (first: number, count = 1) => ({
  ...{ first, count, epoch: 1, wakeAtMs: 0 },
  bytes: wrapPiece(NO_HEAD, Uint8Array.of(first)),
});
type LogPiece = ReturnType<typeof piece>;

/** A site that keeps one log of another, and isolates that remember what they are told. */
class Site {
  readonly pieces: LogPiece[] = [];
  checkpoint: FollowedLog["checkpoint"] = null;
  by = "edge-2";
  rank: number | null = 0;
  version = "v1";
  wanted = true;
  readonly lost = new Set<string>();
  readonly takenOver: string[] = [];
  readonly lines: string[] = [];
  readonly told: string[] = [];
  readonly opened: OpenSession[] = [];
  readonly ahead: boolean[] = [];
  sink: ChannelSink | null = null;
  /** Resolves openings, where it is set. */
  gate: PromiseWithResolvers<void> | null = null;
  nowMs = 0;
  /** Sessions whose logs are kept here; the first is the one that is looked at. */
  names: readonly StatefulName[] = [NAME];
  readonly #changed = new Set<(site: string) => void>();
  readonly standbys: Standbys;

  constructor(max?: number) {
    const head = () => ({ by: this.by });
    const log = (name = NAME) => ({ name, head: head(), last: this.last }) as unknown as KeptLog;
    const logs = {
      all: () => this.names.map((name) => log(name)),
      log: () => log(),
      rank: ({ id }: StatefulName) => Promise.resolve(id.startsWith("far") ? 1 : this.rank),
      copy: () =>
        Promise.resolve({
          ...{ seed: SEED, version: this.version, checkpoint: this.checkpoint, last: this.last },
          log: [...this.pieces],
        }),
    } as unknown as Followable;
    const isolate = {
      ...{
        deliver: () => {},
        acknowledge: () => {},
        checkpointNow: () => {},
        holds: () => {},
        killFor: () => {},
      },
      closeChannel: (channel: number) => void this.told.push(`close ${channel}`),
      piece: (channel: number, entries: Uint8Array) =>
        void this.told.push(`piece ${channel}: ${entries.join()}`),
      promote: (channel: number, { epoch }: Promotion, sink: ChannelSink) => {
        this.told.push(`promote ${channel} to ${epoch}`);
        this.sink = sink;
      },
    };
    this.standbys = new Standbys({
      ...{
        site: "edge-1",
        logs,
        clock: { nowMs: () => this.nowMs, after: SYSTEM_CLOCK.after },
        sweepMs: 20,
        ...(max === undefined ? {} : { max }),
      },
      wantsAny: () => true,
      wants: () => this.wanted,
      codeOf: (_, { version }) => Promise.resolve({ version, code: `${version} deno` }),
      follow: async (_name, _version, session, sink, isAhead) => {
        this.opened.push(session);
        this.ahead.push(isAhead);
        await this.gate?.promise;
        this.sink = sink;
        return { isolate, channel: this.opened.length };
      },
      fellows: {
        isLost: (site) => this.lost.has(site),
        watch: () => () => {},
        onChange: (changed) => {
          this.#changed.add(changed);
          return () => this.#changed.delete(changed);
        },
      },
      takeOver: ({ id }) => void this.takenOver.push(id),
      log: (_, level, text) => void this.lines.push(`${level} ${text}`),
    });
  }

  get last(): number {
    const last = this.pieces.at(-1);
    return last === undefined ? this.checkpoint?.at ?? 0 : last.first + last.count - 1;
  }

  news(news: LogNews): void {
    this.standbys.onLog({ name: NAME, head: { by: this.by } } as unknown as KeptLog, news);
  }

  append(...pieces: LogPiece[]): void {
    this.pieces.push(...pieces);
    this.news({ kind: "appended", pieces });
  }

  lose(site: string): void {
    this.lost.add(site);
    for (const changed of this.#changed) changed(site);
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    const endMs = performance.now() + 60_000;
    while (!holds()) {
      if (performance.now() > endMs) throw new Error(`not within a minute: ${what}`);
      this.nowMs += 100;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async following(count = 1): Promise<void> {
    await this.until(
      `${count} followed`,
      () => this.opened.length === count && this.standbys.counts.standbys === 1,
    );
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

async function withSite(run: (site: Site) => Promise<void>, max?: number): Promise<void> {
  const site = new Site(max);
  try {
    await run(site);
  } finally {
    site.standbys.close();
  }
}

Deno.test("a standby is given its log piece by piece, also what came while it was opened", () =>
  withSite(async (site) => {
    site.pieces.push(piece(1), piece(2));
    site.gate = Promise.withResolvers();
    await site.until("it is being opened", () => site.opened.length === 1);
    assert.deepEqual([...site.opened[0]?.entries ?? []], [1, 2]);
    site.append(piece(3));
    site.gate.resolve();
    await site.until("it is open", () => site.told.length === 1);
    site.append(piece(4), piece(5, 2));
    assert.deepEqual(site.told, ["piece 1: 3", "piece 1: 4", "piece 1: 5"]);
    const standby = await site.standbys.take(NAME, "v1", 6);
    assert.equal(standby?.last, 6);
    assert.equal(site.standbys.counts.promoted, 1);
  }));

Deno.test("a standby whose log is cut, begun anew or has a gap is closed, and begins again (standby.ts SB1)", () =>
  withSite(async (site) => {
    site.pieces.push(piece(1), piece(2));
    site.news({ kind: "begun", isSame: false });
    await site.following(1);
    site.news({ kind: "begun", isSame: true });
    assert.equal(site.opened.length, 1, "another home with the same log changes nothing");
    site.pieces.pop();
    site.news({ kind: "begun", isSame: false });
    await site.following(2);
    assert.deepEqual([...site.opened[1]?.entries ?? []], [1]);
    site.news({ kind: "appended", pieces: [piece(7)] });
    await site.following(3);
    site.pieces.length = 0;
    site.checkpoint = { at: 9, bytes: wrapPiece(NO_HEAD, Uint8Array.of(99)), version: "v1", parts: [] };
    site.news({ kind: "based", at: 9 });
    await site.following(4);
    assert.deepEqual(site.opened[3]?.checkpoint, { at: 9, bytes: Uint8Array.of(99), state: [] });
    site.news({ kind: "gone" });
    assert.deepEqual(site.told, ["close 1", "close 2", "close 3", "close 4"]);
  }));

Deno.test("a checkpoint of what was followed changes nothing, until the log that was followed is long", () =>
  withSite(async (site) => {
    site.pieces.push(piece(1));
    await site.following();
    site.news({ kind: "based", at: 1 });
    assert.deepEqual(site.told, []);
    site.append({ ...piece(2), bytes: wrapPiece(NO_HEAD, new Uint8Array(600 * 1024)) });
    site.news({ kind: "based", at: 2 });
    await site.following(2);
  }));

Deno.test("only the nearest owner stands by, for classes that say so", () =>
  withSite(async (site) => {
    site.rank = 1;
    await site.until("its owners were asked for", () => site.nowMs > 1_500);
    assert.equal(site.opened.length, 0);
    site.rank = 0;
    await site.following(); // looked at again after a while
    site.wanted = false;
    await site.until("it is given up", () => site.standbys.counts.standbys === 0);
  }));

Deno.test("no more are followed than a site has room for, and those that others are nearer to take none (standbys.ts SS3)", () =>
  withSite(async (site) => {
    const ids = ["far-1", "far-2", "far-3", "near-1", "near-2", "near-3"];
    site.names = ids.map((id) => ({ ...NAME, id }));
    await site.until("some sweeps", () => site.nowMs > 5_000);
    assert.deepEqual(site.opened.map(({ id }) => id), ["near-1", "near-2"]);
    assert.equal(site.standbys.counts.standbys, 2);
  }, 2));

Deno.test("what can't be followed is told once, and tried again from another checkpoint (standbys.ts SS2)", () =>
  withSite(async (site) => {
    site.pieces.push(piece(1));
    await site.following();
    site.sink?.parked({ code: "diverged", message: "entry 1 did other things", detail: { sequence: 1 } });
    assert.match(site.lines.join(), /error card "ann" of shop can't be followed: diverged.*"sequence":1/);
    assert.equal(site.standbys.counts.diverged, 1);
    site.append(piece(2));
    await site.until("some sweeps", () => site.nowMs > 40_000);
    assert.equal(site.opened.length, 1);
    site.news({ kind: "based", at: 2 });
    await site.following(2);
    assert.equal(site.lines.length, 1);
  }));

Deno.test("a session that goes on with other code is followed from there", () =>
  withSite(async (site) => {
    await site.following();
    site.version = "v2";
    site.sink?.parked({ code: "code_differs", message: "", detail: {} });
    await site.following(2);
    assert.deepEqual([site.opened[1]?.code, site.lines], ["v2 deno", []]);
  }));

Deno.test("a standby asks to be the home when its home is lost, and again until it is", () =>
  withSite(async (site) => {
    site.pieces.push(piece(1));
    await site.following();
    site.lose("edge-3");
    assert.deepEqual(site.takenOver, []);
    site.lose("edge-2");
    assert.deepEqual(site.takenOver, ["ann"]);
    await site.until("it asks again", () => site.takenOver.length > 1);
    assert.equal(await site.standbys.take(NAME, "v1", 2), null, "its log goes on farther");
    assert.deepEqual(site.told, ["close 1"]);
    await site.following(2);
    assert.equal(await site.standbys.take(NAME, "v2", 1), null, "other code is to run it");
  }));

const nothing: ChannelSink = {
  ...{ opened: () => {}, commit: () => {}, call: () => {}, dropped: () => {}, checkpointed: () => {} },
  ...{ parked: () => {}, log: () => {}, ended: () => {} },
};
const promotion = { epoch: 2, replica: 1, out: {}, effectsApplied: 0 };

Deno.test("a promoted standby is heard when the run knows where it is, in order", () =>
  withSite(async (site) => {
    await site.following();
    const standby = await site.standbys.take(NAME, "v1", 0);
    assert.ok(standby !== null);
    const heard: string[] = [];
    const run = {
      ...nothing,
      opened: () => void heard.push("opened"),
      commit: () => void heard.push("commit"),
      parked: () => void heard.push("parked"),
    };
    const serving = standby.promote(promotion, run).then(() => void heard.push("serves"));
    assert.deepEqual(site.told, ["promote 1 to 2"]);
    // In one read of the socket.
    site.sink?.opened({} as never);
    site.sink?.commit({} as never);
    await serving;
    site.sink?.parked({ code: "internal", message: "", detail: {} });
    await site.until("all is heard", () => heard.length === 4);
    assert.deepEqual(heard, ["serves", "opened", "commit", "parked"]);
  }));

Deno.test("of what a promoted standby says before it goes on nothing is kept, but what it logs (standby.ts SB2)", () =>
  withSite(async (site) => {
    await site.following();
    const standby = await site.standbys.take(NAME, "v1", 0);
    const heard: string[] = [];
    const run = {
      ...nothing,
      ...{ opened: () => void heard.push("opened"), commit: () => void heard.push("commit") },
      log: () => void heard.push("line"),
    };
    const serving = standby?.promote(promotion, run);
    for (let i = 0; i < 3; i++) site.sink?.commit({} as never);
    site.sink?.log("info", "line");
    site.sink?.opened({} as never);
    await serving;
    await site.until("it goes on", () => heard.length === 2);
    assert.deepEqual(heard, ["line", "opened"]);
  }));

Deno.test("a promotion that fails before it serves fails alone", () =>
  withSite(async (site) => {
    await site.following();
    const standby = await site.standbys.take(NAME, "v1", 0);
    const parked: string[] = [];
    const serving = standby?.promote(promotion, { ...nothing, parked: ({ code }) => void parked.push(code) });
    site.sink?.parked({ code: "diverged", message: "too late", detail: {} });
    await assert.rejects(serving ?? Promise.resolve(), (error) => error instanceof StandbyFailed);
    assert.deepEqual([parked, site.told.at(-1)], [[], "close 1"]);
    await assert.rejects(standby?.promote(promotion, nothing) ?? Promise.resolve(), StandbyFailed);
  }));

Deno.test("logs are looked through now and then, and those that begin in between are found by themselves", () => {
  const due: (() => void)[] = [], asked: string[] = [];
  let looks = 0, wantsAny = false;
  const log = (id: string, name: string, by: string) => ({
    name: { app: "shop", class: name, id },
    head: { by },
  });
  const site = new Standbys({
    site: "s1",
    logs: {
      all: () => {
        looks++;
        return [log("a", "hot", "s2"), log("b", "cold", "s2"), log("c", "hot", "s1")].values();
      },
      rank: ({ id }: StatefulName) => {
        asked.push(id);
        return Promise.resolve(1);
      },
    } as unknown as Followable,
    wantsAny: () => wantsAny,
    wants: (name) => name.class === "hot",
    codeOf: () => Promise.resolve(undefined),
    follow: () => Promise.reject(new Error("none is followed")),
    fellows: { isLost: () => false, watch: () => () => {}, onChange: () => () => {} },
    takeOver: () => {},
    log: () => {},
    clock: { nowMs: () => 0, after: (_, run) => (due.push(run), () => {}) },
  });
  const pass = () => due.splice(0).forEach((run) => run());
  pass();
  assert.deepEqual([looks, asked], [0, []]);
  wantsAny = true;
  for (let i = 0; i < 10; i++) pass();
  assert.deepEqual([looks, asked], [1, ["a"]]);
  for (const [id, name] of [["d", "cold"], ["e", "hot"]] as const) {
    site.onLog(log(id, name, "s3") as unknown as KeptLog, { kind: "begun", isSame: false });
  }
  due.splice(0, due.length - 1);
  pass();
  assert.deepEqual([looks, asked], [1, ["a", "e"]]);
  site.close();
});

Deno.test("what is about to be opened is followed meanwhile, of any class and whoever is nearer (SS4)", () =>
  withSite(async (site) => {
    site.wanted = false;
    site.rank = 1;
    site.pieces.push(piece(1), piece(2));
    site.gate = Promise.withResolvers();
    assert.ok(site.standbys.ahead(NAME));
    assert.ok(site.standbys.follows(NAME));
    await site.until("it is being opened", () => site.opened.length === 1);
    assert.ok(site.standbys.ahead(NAME), "asked for again it is followed once");
    site.append(piece(3));
    const taken = site.standbys.take(NAME, "v1", 3);
    site.gate.resolve();
    const standby = await taken;
    assert.deepEqual([standby?.last, site.opened.length, site.ahead], [3, 1, [true]]);
    assert.deepEqual(site.told, ["piece 1: 3"]);
    assert.equal(site.standbys.counts.promoted, 0, "it is no standby of its class");
    assert.ok(!site.standbys.follows(NAME));
    site.by = "edge-1";
    assert.ok(!site.standbys.ahead(NAME), "it is this site's");
  }));

Deno.test("what was followed ahead and did not come to be opened is let go of, and nobody is told (SS4)", () =>
  withSite(async (site) => {
    site.wanted = false;
    assert.ok(site.standbys.ahead(NAME));
    await site.until("it is followed", () => site.opened.length === 1);
    site.lose("edge-2");
    await site.until("it is closed", () => site.told.length === 1);
    assert.deepEqual([site.told, site.takenOver, site.lines], [["close 1"], [], []]);
    assert.ok(site.nowMs >= 10_000, `${site.nowMs} ms`);
    assert.ok(site.standbys.ahead(NAME));
    await site.until("it is followed again", () => site.opened.length === 2);
    site.sink?.parked({ code: "diverged", message: "", detail: {} });
    assert.deepEqual([site.lines, site.standbys.follows(NAME)], [[], false]);
    assert.equal(await site.standbys.take(NAME, "v1", 0), null);
  }));

Deno.test("few are followed ahead at once: with more the processor is what they wait for (SS4)", () =>
  withSite((site) => {
    site.wanted = false;
    const ids = Array.from({ length: 12 }, (_, i) => `x${i}`);
    const followed = ids.filter((id) => site.standbys.ahead({ ...NAME, id }));
    assert.deepEqual(followed, ids.slice(0, 8));
    assert.ok(site.standbys.ahead({ ...NAME, id: "x0" }), "that is followed already");
    return Promise.resolve();
  }));

Deno.test("a promotion whose isolate had ended before it could hear of it fails alone, too (SB3)", () =>
  withSite(async (site) => {
    await site.following();
    const followed = site.sink;
    const standby = await site.standbys.take(NAME, "v1", 0);
    const serving = standby?.promote(promotion, nothing) ?? Promise.resolve();
    // Hundreds are told of the end of their isolate, one after the other; it knows none of them any more.
    followed?.ended({ isPlanned: false, why: "it was lost", channel: 0, received: 0 }, false);
    await assert.rejects(serving, StandbyFailed);
    assert.equal(site.told.at(-1), "close 1");
  }));
