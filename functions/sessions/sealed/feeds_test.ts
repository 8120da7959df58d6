import assert from "node:assert/strict";
import type { LogCopy, LogPiece } from "../log/asks.ts";
import { markAfter, NO_STATE } from "../log/state_parts.ts";
import { decodeSummary, HostFeeds, HostLog, type HostLogEnd, openHostLog, TAG_BYTES } from "./mod.ts";
import { HOST_BASE_BYTES_MAX, HOST_LOG_BYTES_MAX } from "./limits.ts";

const NAME = { app: "duel", class: "match", id: "one" };
const SECRET = new Uint8Array(32).fill(7);
const EPOCH = 3;

/** A home with nothing but what feeds ask of it. */
class Home {
  readonly name = NAME;
  readonly epoch = EPOCH;
  last = 0;
  released = 0;
  base: { readonly at: number; readonly bytes: Uint8Array } | null = null;
  pieces: LogPiece[] = [];
  readonly ahead = new Set<string>();
  readonly has = new Map<string, number>();
  readonly told = new Map<string, number>();
  readonly dropped: string[] = [];
  mayHold = true;
  readonly hosts = {
    has: (host: string, through: number) => {
      if (this.mayHold) this.has.set(host, through);
      return this.mayHold;
    },
    drop: (host: string) => void this.dropped.push(host),
    told: (host: string, through: number) => void this.told.set(host, through),
    isAhead: (host: string) => this.ahead.has(host),
    isAwaited: (host: string) => this.ahead.has(host),
  };
  readonly ready: string[] = [];
  readonly feeds: HostFeeds;

  constructor(ends?: ReadonlyMap<string, HostLogEnd>) {
    let salts = 0;
    this.feeds = new HostFeeds(this, {
      secret: SECRET,
      random: (length) => new Uint8Array(length).fill(++salts),
      ready: (host) => void this.ready.push(host),
      failed: (_, error) => {
        throw error;
      },
    }, ends);
  }

  copies = 0;

  get copyBytes(): number {
    const at = this.base?.at ?? 0;
    const pieces = this.pieces.filter(({ first }) => first > at);
    return pieces.reduce((sum, { bytes }) => sum + bytes.length, this.base?.bytes.length ?? 0);
  }

  copy(): Promise<LogCopy> {
    this.copies++;
    const { base } = this, at = base?.at ?? 0;
    const fields = {
      epoch: 1,
      wakeAtMs: 0,
      version: "v1",
      answers: new Uint8Array(),
      state: markAfter(NO_STATE, []),
    };
    return Promise.resolve({
      ...{ seed: new Uint8Array(32), version: "v1", parts: [] },
      base: base === null ? null : { ...fields, ...base },
      pieces: this.pieces.filter(({ first }) => first > at),
    });
  }

  commit(bytes = new Uint8Array(4)): void {
    const piece = { epoch: EPOCH, first: ++this.last, count: 1, wakeAtMs: 0, bytes };
    this.pieces.push(piece);
    this.feeds.appended(piece);
  }

  checkpoint(bytes: Uint8Array, at = this.last): void {
    this.base = { at, bytes };
    this.feeds.based(at);
  }
}

/** What a host holds after these records, opened. */
function opened(log: HostLog, host = "c1") {
  const found = openHostLog([SECRET], { name: NAME, receiver: host }, log.promise(EPOCH) ?? []);
  if (!found.ok) throw new Error(found.message);
  return found.copy;
}

const take = (log: HostLog, records: readonly Uint8Array[]) =>
  records.map((record) => log.take(EPOCH, record)).filter((taken) => taken !== "held");
const settled = () => new Promise<void>((resolve) => queueMicrotask(() => queueMicrotask(resolve)));

Deno.test("a host that comes is told what was released, and nothing before its log is ready (HF1)", async () => {
  const home = new Home(), log = new HostLog();
  home.commit();
  home.commit();
  home.released = 1;
  home.feeds.attach("c1", null);
  assert.deepEqual([home.feeds.reach("c1"), home.feeds.next("c1")], [-1, []]);
  await settled();
  await settled();
  assert.deepEqual([home.ready, home.feeds.reach("c1")], [["c1"], 1]);
  assert.deepEqual(take(log, home.feeds.next("c1")), []);
  assert.equal(opened(log).through, 1);
  assert.deepEqual([[...home.has], [...home.told]], [[], []]);
  home.feeds.taken("c1", 1);
  assert.deepEqual([...home.has], [["c1", 1]]);
});

Deno.test("a host that is ahead has with each frame all that was appended, each commit once (HF1)", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit();
  home.commit();
  assert.equal(home.feeds.reach("c1"), 2);
  take(log, home.feeds.next("c1"));
  assert.deepEqual(home.feeds.next("c1"), []);
  home.commit();
  take(log, home.feeds.next("c1"));
  assert.deepEqual([opened(log).through, log.length, home.told.get("c1")], [3, 3, 3]);
  home.feeds.taken("c1", 2);
  assert.equal(home.has.get("c1"), 2);
  for (const records of [0, 1, 4, -1, 1.5]) home.feeds.taken("c1", records);
  assert.equal(home.has.get("c1"), 2);
});

Deno.test("a commit that comes while the log is read is in it once", async () => {
  const home = new Home(), log = new HostLog();
  home.ahead.add("c1");
  home.commit();
  home.feeds.attach("c1", null);
  home.commit();
  await settled();
  home.commit();
  take(log, home.feeds.next("c1"));
  assert.deepEqual(opened(log).log.pieces.map(({ first }) => first), [1, 2, 3]);
});

Deno.test("a host that comes back goes on where its log ends, and one that it did not reach has the rest again", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit();
  take(log, home.feeds.next("c1"));
  home.commit();
  home.feeds.next("c1"); // lost on its way
  home.feeds.detach("c1");
  home.ahead.delete("c1");
  assert.deepEqual([home.dropped, home.feeds.reach("c1")], [["c1"], -1]);
  home.released = 2;
  home.feeds.attach("c1", decodeSummary(log.summary()).tag);
  await settled();
  const records = home.feeds.next("c1");
  assert.deepEqual(records.map(([kind]) => kind), [1]);
  take(log, records);
  assert.deepEqual(opened(log).log.pieces.map(({ first }) => first), [1, 2]);
});

Deno.test("a host that took nothing of its last channel goes on where it was before it (HF5)", async () => {
  const home = new Home(), log = new HostLog();
  const tag = () => decodeSummary(log.summary()).tag;
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  for (let i = 0; i < 3; i++) home.commit();
  take(log, home.feeds.next("c1"));
  for (let channel = 0; channel < 3; channel++) {
    home.feeds.detach("c1");
    home.ahead.delete("c1");
    home.feeds.attach("c1", tag());
    await settled();
    assert.deepEqual(home.feeds.next("c1").map(([kind]) => kind), [1], "it goes on"); // lost on its way
  }
  home.feeds.detach("c1");
  home.feeds.attach("c1", tag());
  await settled();
  take(log, home.feeds.next("c1"));
  assert.deepEqual([opened(log).through, home.released], [3, 0]);
});

Deno.test("a host whose log ends where nobody knows is sent all that it was sent before (HF5)", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  for (let i = 0; i < 3; i++) home.commit();
  take(log, home.feeds.next("c1"));
  home.ahead.delete("c1");
  home.feeds.detach("c1");
  home.feeds.attach("c1", new Uint8Array(TAG_BYTES));
  await settled();
  const records = home.feeds.next("c1");
  assert.deepEqual(records.map(([kind]) => kind), [0], "a whole one");
  take(log, records);
  assert.deepEqual([opened(log).through, home.released], [3, 0]);
});

Deno.test("what a host has already is never taken from it, released or not", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit();
  take(log, home.feeds.next("c1"));
  home.ahead.delete("c1");
  home.feeds.attach("c1", decodeSummary(log.summary()).tag);
  await settled();
  take(log, home.feeds.next("c1"));
  assert.deepEqual([opened(log).through, home.released], [1, 0]);
});

Deno.test("a host of the home before goes on from what it was asked for; an unknown end begins anew", async () => {
  const before = new Home(), log = new HostLog();
  before.released = 0;
  before.feeds.attach("c1", null);
  await settled();
  take(log, before.feeds.next("c1"));
  const { tag, through, bytes, records } = opened(log);
  const home = new Home(new Map([["c1", { tag, through, bytes, records, baseAt: 0 }]]));
  for (const [end, kind] of [[tag, 1], [new Uint8Array(TAG_BYTES), 0], [null, 0]] as const) {
    home.feeds.attach("c1", end);
    await settled();
    assert.equal(home.feeds.next("c1")[0]?.[0], kind);
  }
});

Deno.test("a host with much has the log anew from the newest base on", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  const large = new Uint8Array(HOST_LOG_BYTES_MAX / 2);
  home.commit(large);
  take(log, home.feeds.next("c1"));
  home.checkpoint(new Uint8Array(100));
  home.commit();
  take(log, home.feeds.next("c1"));
  home.commit();
  await settled();
  take(log, home.feeds.next("c1"));
  assert.ok(log.bytes < 1_000, `${log.bytes} bytes`);
  assert.deepEqual([opened(log).log.base?.at, opened(log).through], [1, 3]);
});

Deno.test("a host that would hold too much holds nothing, and is told what others are", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit(new Uint8Array(HOST_LOG_BYTES_MAX));
  assert.deepEqual([home.feeds.next("c1"), home.dropped, home.feeds.reach("c1")], [[], ["c1"], 0]);
  home.released = 1;
  assert.deepEqual([home.feeds.next("c1"), home.feeds.reach("c1")], [[], 1]);
});

Deno.test("a host is sent no base that is too large for it, and none that the home has no room for counts", async () => {
  const home = new Home();
  home.commit();
  home.released = 1;
  home.checkpoint(new Uint8Array(HOST_BASE_BYTES_MAX + 1));
  home.feeds.attach("c1", null);
  await settled();
  assert.deepEqual([home.feeds.next("c1"), home.feeds.reach("c1"), home.dropped], [[], 1, ["c1"]]);
  home.base = null;
  home.mayHold = false;
  home.feeds.attach("c2", null);
  await settled();
  assert.equal(home.feeds.next("c2").length, 1);
  home.feeds.taken("c2", 1);
  assert.deepEqual([home.feeds.next("c2"), home.dropped], [[], ["c1", "c2"]]);
});

Deno.test("what was begun for a channel that broke meanwhile is nothing", async () => {
  const home = new Home();
  home.feeds.attach("c1", null);
  home.feeds.detach("c1");
  await settled();
  assert.deepEqual([home.ready, home.feeds.next("c1"), home.feeds.reach("c1")], [[], [], -1]);
  home.feeds.attach("c1", null);
  home.feeds.attach("c1", null);
  await settled();
  assert.deepEqual(home.ready, ["c1"]);
});

Deno.test("a log that is too long for hosts is not even read for them, and held again from a checkpoint on that is not", async () => {
  const home = new Home();
  home.commit(new Uint8Array(HOST_LOG_BYTES_MAX + 1));
  home.released = home.last;
  home.feeds.attach("c1", null);
  await settled();
  assert.deepEqual([home.copies, home.feeds.reach("c1"), home.feeds.next("c1")], [0, 1, []]);
  home.checkpoint(new Uint8Array(100));
  await settled();
  assert.equal(home.copies, 1);
  const log = new HostLog();
  take(log, home.feeds.next("c1"));
  assert.equal(opened(log).through, 1);
  home.feeds.taken("c1", 1);
  home.ahead.add("c1");
  home.commit(new Uint8Array(HOST_LOG_BYTES_MAX + 1));
  assert.deepEqual([home.feeds.next("c1"), home.dropped], [[], ["c1", "c1"]]);
  home.released = home.last;
  home.checkpoint(new Uint8Array(100));
  await settled();
  take(log, home.feeds.next("c1"));
  home.feeds.taken("c1", 2);
  assert.deepEqual([opened(log).through, home.has.get("c1")], [2, 2]);
});

Deno.test("a host that does not take what it was sent holds nothing, and the log anew when it has taken all (HF4)", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  assert.equal(home.feeds.untaken("c1"), 1);
  home.feeds.taken("c1", 1);
  assert.equal(home.feeds.untaken("c1"), 0);
  for (let i = 0; i < 3; i++) {
    home.commit();
    take(log, home.feeds.next("c1"));
  }
  assert.equal(home.feeds.untaken("c1"), 2);
  home.feeds.taken("c1", 3);
  assert.equal(home.feeds.untaken("c1"), 4);
  home.feeds.late("c1", false);
  assert.deepEqual(home.dropped, ["c1"]);
  home.released = 1;
  assert.deepEqual([home.feeds.reach("c1"), home.feeds.untaken("c1")], [1, 0], "it is told what others are");
  home.checkpoint(new Uint8Array(10)); // who is late is not sent the next base
  home.commit();
  await settled();
  assert.deepEqual(home.feeds.next("c1"), []);
  for (const records of [3, 5]) home.feeds.taken("c1", records);
  await settled();
  assert.deepEqual(home.feeds.next("c1"), []);
  home.feeds.taken("c1", 4);
  home.released = home.last;
  await settled();
  assert.deepEqual(take(log, home.feeds.next("c1")), []);
  assert.deepEqual([opened(log).through, log.length], [home.last, 1]);
  home.feeds.taken("c1", 5);
  assert.equal(home.has.get("c1"), home.last);
});

Deno.test("a host that is to be none for a while is sent nothing of the log, whatever it takes, until it may be again", async () => {
  for (const isEarly of [false, true]) {
    const home = new Home(), log = new HostLog();
    home.feeds.attach("c1", null);
    await settled();
    take(log, home.feeds.next("c1"));
    home.feeds.late("c1", true);
    if (isEarly) home.feeds.again("c1");
    else home.feeds.taken("c1", 1);
    home.commit();
    home.checkpoint(new Uint8Array(10));
    await settled();
    assert.deepEqual(home.feeds.next("c1"), [], "it lacks the one, or the other");
    if (isEarly) home.feeds.taken("c1", 1);
    else home.feeds.again("c1");
    home.released = home.last;
    await settled();
    take(log, home.feeds.next("c1"));
    home.feeds.taken("c1", 2);
    assert.equal(home.has.get("c1"), home.last);
    assert.equal(opened(log).through, home.last);
  }
});

Deno.test("a host holds few records where bases are small, and is not sent a large one over and over", async () => {
  for (const [size, wholes, held] of [[100, 4, 1_300], [100_000, 1, 4_000]] as const) {
    const home = new Home(), log = new HostLog();
    home.ahead.add("c1");
    home.commit();
    home.checkpoint(new Uint8Array(size));
    home.feeds.attach("c1", null);
    await settled();
    let most = 0, begun = 0;
    for (let i = 1; i <= 4_000; i++) {
      for (const record of home.feeds.next("c1")) {
        assert.equal(log.take(EPOCH, record), "held");
        if (record[0] === 0) begun++;
      }
      most = Math.max(most, log.length);
      home.commit();
      if (i % 256 === 0) home.checkpoint(new Uint8Array(size));
      await settled();
    }
    assert.deepEqual([begun, most <= held], [wholes, true], `${size}: ${begun} bases, ${most} records`);
    assert.equal(opened(log).through, home.last - 1);
  }
});

Deno.test("a host that gets the log anew while commits leave to it has each of them once", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit(new Uint8Array(HOST_LOG_BYTES_MAX / 2));
  take(log, home.feeds.next("c1"));
  home.checkpoint(new Uint8Array(100));
  home.commit();
  take(log, home.feeds.next("c1")); // the log is read from now on
  home.commit();
  take(log, home.feeds.next("c1"));
  home.commit();
  await settled();
  home.commit();
  take(log, home.feeds.next("c1"));
  const { base, pieces } = opened(log).log;
  assert.deepEqual([base?.at, pieces.map(({ first }) => first)], [1, [2, 3, 4, 5]]);
});

Deno.test("what a host was told before its log became too long is not taken from it by the next base", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit();
  home.commit();
  take(log, home.feeds.next("c1"));
  home.commit(new Uint8Array(HOST_LOG_BYTES_MAX));
  assert.deepEqual(home.feeds.next("c1"), []);
  home.ahead.delete("c1");
  home.released = 1;
  home.pieces.pop();
  home.checkpoint(new Uint8Array(100), 1);
  await settled();
  take(log, home.feeds.next("c1"));
  assert.deepEqual([opened(log).log.base?.at, opened(log).through], [1, 2]);
});

Deno.test("a log that is too long for hosts is not read for one that comes back, nor from a base that is (HF3)", async () => {
  const home = new Home(), log = new HostLog();
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.ahead.add("c1");
  home.commit(new Uint8Array(HOST_LOG_BYTES_MAX / 2 + 1));
  home.checkpoint(new Uint8Array(HOST_LOG_BYTES_MAX + 1));
  assert.deepEqual([take(log, home.feeds.next("c1")), home.copies], [[], 1]);
  home.commit();
  assert.deepEqual([take(log, home.feeds.next("c1")), home.copies], [[], 1], "it goes on as it is");
  assert.deepEqual([opened(log).through, home.feeds.reach("c1"), home.dropped], [2, 2, []]);
  home.feeds.detach("c1");
  home.released = 2;
  home.feeds.attach("c1", decodeSummary(log.summary()).tag);
  await settled();
  assert.deepEqual([home.copies, home.feeds.next("c1"), home.feeds.reach("c1")], [1, [], 2]);
});

Deno.test("a host that takes over its own channel counts on, and one that has lost what it said to hold does not (HF2)", async () => {
  const home = new Home(), log = new HostLog();
  home.commit();
  home.released = 1;
  home.feeds.attach("c1", null);
  await settled();
  take(log, home.feeds.next("c1"));
  home.feeds.taken("c1", 1);
  home.feeds.attach("c1", decodeSummary(log.summary()).tag);
  assert.deepEqual(home.dropped, []);
  await settled();
  home.commit();
  home.released = 2;
  take(log, home.feeds.next("c1"));
  home.feeds.taken("c1", 1);
  home.feeds.attach("c1", null);
  assert.deepEqual(home.dropped, ["c1"]);
  const { tag, through, bytes, records } = opened(log);
  const next = new Home(new Map([["c1", { tag, through, bytes, records, baseAt: 0 }]]));
  next.feeds.attach("c1", tag);
  assert.deepEqual(next.dropped, []);
  next.feeds.detach("c1");
  next.dropped.pop();
  next.feeds.attach("c1", new Uint8Array(TAG_BYTES));
  assert.deepEqual(next.dropped, ["c1"], "it said to hold more when it was asked");
});
