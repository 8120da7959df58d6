/** The host of stateful sessions over real homes, logs and replays, without processes. */
import assert from "node:assert/strict";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import type { StoreClient } from "../../../../functions/vocabulary/store_client.ts";
import { map, value } from "../../../../functions/tracked/mod.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { Card } from "../../sample_app.ts";
import { resolve } from "../../../../store/model/merge.ts";
import { packKey } from "../../../../store/model/key.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { Disks, type MemoryHost, memoryHost, sleep } from "./memory_host.ts";

/** Resolved by a handler that takes its time, as it begins. */
let begun = Promise.withResolvers<void>();

/** Resolves once such a handler waits: the turn in which it began is over. */
async function handlerBegan(): Promise<void> {
  await begun.promise;
  await new Promise((resolve) => setTimeout(resolve));
}

class Robot extends Session<StoreClient> {
  count = value(0);
  log = map<string, number>();
  plain: string[] = [];

  add(by: number): number {
    this.count.set(this.count.get() + by);
    this.plain.push(`${by}`);
    return this.count.get();
  }
  all(): unknown {
    return { count: this.count.get(), plain: this.plain, log: [...this.log] };
  }
  fail(): never {
    this.count.set(99);
    throw new Error("it fails");
  }
  async write(name: string, text: string): Promise<void> {
    await this.env.commit([], [{ kind: "set", key: packKey(["kv", name]), value: encodeValue(text) }]);
  }
  /** A sum, which leaves with the handler, and a checked write, which is made when it is called. */
  async count2(): Promise<boolean> {
    const key = packKey(["kv", "sum"]), once = packKey(["kv", "once"]);
    await this.env.commit([], [{ kind: "sum", key, value: encodeValue(1) }]);
    const [row] = await this.env.get([once], "session");
    const { ok } = await this.env.commit([{ key: once, versionstamp: row?.versionstamp ?? null }], [
      { kind: "set", key: once, value: encodeValue(Number(row ? decodeValue(row.value) : 0) + 1) },
    ]);
    return ok;
  }
  async slow(): Promise<number> {
    begun.resolve();
    await sleep(30);
    return this.add(1);
  }
  ring(ms: number): void {
    this.setTimer("bell", ms);
  }
  override onTimer(name: string): void {
    this.log.set(name, (this.log.get(name) ?? 0) + 1);
  }
  close(): number {
    this.end();
    return this.count.get();
  }
}

const robot = () => new Robot() as unknown as SessionObject;
const NAME = { app: "shop", class: "robot", id: "r" };
let requests = 0;

async function ask(host: MemoryHost, method: string, ...args: unknown[]): Promise<unknown> {
  const request = `request-${requests++}`;
  const answer = await askAs(host, request, method, ...args);
  host.host.received(NAME, request);
  return answer;
}

async function askAs(
  host: MemoryHost,
  request: string,
  method: string,
  ...args: unknown[]
): Promise<unknown> {
  const bytes = encodeCall({ kind: "rpc", method, args: encodeValue(args) });
  const { answer } = await host.host.request(NAME, { request, chain: [], bytes, token: null });
  const told = decodeAnswer(answer);
  if (told.kind === "error") throw Object.assign(new Error(told.message), { code: told.code });
  assert.equal(told.kind, "value");
  return told.kind === "value" ? decodeValue(told.value) : undefined;
}

Deno.test("requests of a stateful session run one after the other, and a request is run once", async () => {
  await using host = await memoryHost(robot);
  const sums = await Promise.all([1, 1, 1, 1].map((by) => ask(host, "add", by)));
  assert.deepEqual(sums, [1, 2, 3, 4]);
  assert.deepEqual(
    await Promise.all([1, 2, 3].map(() => askAs(host, "same", "add", 10))),
    [14, 14, 14],
    "those who ask again with the same id get the same answer",
  );
  assert.equal(await askAs(host, "same", "add", 10), 14, "later, too");
  await assert.rejects(ask(host, "fail"), { message: "it fails" });
  assert.deepEqual(await ask(host, "all"), { count: 14, plain: ["1", "1", "1", "1", "10"], log: [] });
});

Deno.test("a call that its caller waits for no longer is not begun, unless it was (H7)", async () => {
  await using host = await memoryHost(robot);
  begun = Promise.withResolvers();
  const slow = ask(host, "slow");
  await handlerBegan();
  const call = (request: string, signal: AbortSignal) => {
    const bytes = encodeCall({ kind: "rpc", method: "add", args: encodeValue([100]) });
    return host.host.request(NAME, { request, chain: ["robot/other"], bytes, token: null, signal });
  };
  const gone = new AbortController(), stays = new AbortController();
  const left = call("left", gone.signal), shared = call("shared", gone.signal);
  const again = call("shared", stays.signal);
  left.catch(() => {});
  await handlerBegan();
  assert.equal(host.host.waits(NAME, "left").isQueued, true);
  gone.abort();
  await assert.rejects(left, { code: "superseded" });
  assert.equal(host.host.waits(NAME, "left").isQueued, false);
  assert.equal(await slow, 1);
  await Promise.all([shared, again]);
  stays.abort();
  assert.equal(
    (await ask(host, "all") as { count: number }).count,
    101,
    "one that somebody else asks for, too",
  );
});

Deno.test("an isolate whose commits don't follow each other is ended, its event is rejected, and nothing of them stays (R5)", async () => {
  await using host = await memoryHost(robot);
  assert.equal(await ask(host, "add", 5), 5);
  for (const by of [-1, 1, 1_000]) {
    host.twist((commit) => {
      host.twist((same) => same);
      return { ...commit, first: commit.first + by };
    });
    await assert.rejects(ask(host, "add", 1), { code: "isolate_killed", message: /tells of entry/ });
    assert.equal(await ask(host, "add", 0), 5);
  }
  assert.match(host.lines.join(), /isolate of a stateful session is ended: it tells of entry/);
});

Deno.test("a session none of whose isolates tells what follows stands still after a few, and goes on when it is resumed (R5, H3)", async () => {
  await using host = await memoryHost(robot);
  assert.equal(await ask(host, "add", 5), 5);
  host.twist((commit) => ({ ...commit, first: commit.first + 1 }));
  await assert.rejects(ask(host, "add", 1), { code: "stateful_parked" });
  const told = host.lines.filter((line) => line.includes("tells of entry"));
  assert.ok(told.length <= 6, told.join("\n"));
  host.twist((commit) => commit);
  await host.host.resume(NAME);
  assert.equal(await ask(host, "add", 0), 5);
});

Deno.test("a session whose isolate is lost goes on from its log, with what was under way (H2)", async () => {
  await using host = await memoryHost(robot);
  assert.equal(await ask(host, "add", 5), 5);
  const slow = ask(host, "slow"), after = ask(host, "add", 1);
  host.loseIsolates();
  assert.deepEqual(await Promise.all([slow, after]), [6, 7]);
  for (let i = 0; i < 3; i++) {
    const going = [ask(host, "add", 1), ask(host, "slow"), ask(host, "add", 1)];
    host.loseIsolates();
    await Promise.all(going);
  }
  assert.equal((await ask(host, "all") as { count: number }).count, 16);
});

Deno.test("the request in whose handler an isolate ends is told so, and not run again (H3)", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "add", 2);
  begun = Promise.withResolvers();
  const culprit = ask(host, "slow");
  await handlerBegan();
  host.loseIsolates("r");
  await assert.rejects(culprit, { code: "isolate_killed" });
  assert.equal(await ask(host, "add", 3), 5);
  assert.deepEqual((await ask(host, "all") as { plain: string[] }).plain, ["2", "3"]);
});

Deno.test("of requests that are under way together the one is told so in whose handler isolates end (H4)", async () => {
  const held: { host?: MemoryHost } = {};
  let ends = 0;
  class Poisoned extends Robot {
    hang(): void {
      ends++;
      held.host?.hang("r"); // what was done before it has not left yet
    }
  }
  await using host = held.host = await memoryHost(() => new Poisoned() as unknown as SessionObject);
  const added = [1, 2, 3].map((by) => ask(host, "add", by));
  const culprit = ask(host, "hang"), after = ask(host, "add", 4);
  await assert.rejects(culprit, { code: "isolate_killed" });
  assert.deepEqual(await Promise.all([...added, after]), [1, 3, 6, 10]);
  assert.equal(ends, 2);
});

Deno.test("a session at rest is not what its isolate ended for, though its turn was the last", async () => {
  await using host = await memoryHost(robot);
  for (let i = 0; i < 5; i++) {
    assert.equal(await ask(host, "add", 1), i + 1);
    host.loseIsolates("r");
  }
  assert.doesNotMatch(host.lines.join(), /rejected|stands still/);
});

Deno.test("an isolate is wanted while a session is being opened, where its log is here", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "add", 1);
  assert.deepEqual(host.prepared, []); // it may turn out to be at home elsewhere
  host.loseIsolates();
  await ask(host, "add", 1);
  assert.deepEqual(host.prepared, ["r"]);
});

Deno.test("what it writes is in the store when it is answered, under one version however often it is applied (own_store.ts O1)", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "write", "a", "tea");
  const key = packKey(["a", "shop", "kv", "a"]);
  const [first] = await host.replica.system.get([key]);
  assert.equal(decodeValue(first?.value ?? new Uint8Array()), "tea");
  host.loseIsolates();
  await ask(host, "add", 1);
  const [again] = await host.replica.system.get([key]);
  assert.deepEqual([again?.clock, again?.replica], [first?.clock, first?.replica]);
});

Deno.test("sums and checked writes of a session count once, whatever is lost meanwhile (O2)", async () => {
  await using host = await memoryHost(robot);
  const read = async (name: string) => {
    const [row] = await host.replica.system.get([packKey(["a", "shop", "kv", name])]);
    const plain = resolve(row?.value ?? null);
    return plain === null ? null : decodeValue(plain);
  };
  for (let i = 0; i < 8; i++) {
    const counted = ask(host, "count2");
    for (let j = 0; j < i; j++) await new Promise((resolve) => setTimeout(resolve, 1));
    if (i % 2 === 1) host.loseIsolates();
    assert.equal(await counted, true);
  }
  host.loseIsolates();
  await ask(host, "add", 1);
  assert.deepEqual([await read("sum"), await read("once")], [8, 8]);
});

Deno.test("an idle session leaves memory, and comes back with a request or a timer", async () => {
  await using host = await memoryHost(robot, { idleMs: 0 });
  await ask(host, "add", 3);
  await ask(host, "ring", 3_500);
  const until = async (holds: () => boolean | Promise<boolean>) => {
    for (let i = 0; i < 3_000 && !await holds(); i++) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(await holds());
  };
  await until(() => host.host.counts.open === 0);
  assert.equal(host.homes.status().resting, 1);
  await until(() => host.host.counts.open === 1);
  const all = JSON.stringify({ count: 3, plain: ["3"], log: [["bell", 1]] });
  await until(async () => JSON.stringify(await ask(host, "all")) === all);
  await until(() => host.host.counts.open === 0);
  assert.equal(await ask(host, "add", 1), 4);
});

Deno.test("an idle session leaves memory also when the wall clock is set back", async () => {
  let leapMs = 0;
  // Sweeps are once a second.
  const after = (ms: number, run: () => void) => SYSTEM_CLOCK.after(ms === 1_000 ? 10 : ms, run);
  await using host = await memoryHost(robot, {
    idleMs: 1_000,
    peerClock: { nowMs: SYSTEM_CLOCK.nowMs, after },
    wallMs: () => Date.now() + leapMs,
  });
  await ask(host, "add", 3);
  await new Promise((resolve) => setTimeout(resolve, 300)); // a message is over a little after its answer
  leapMs = -3_600_000;
  await until(() => host.host.counts.open === 0);
});

Deno.test("a log outlives its site, and other code takes over from a checkpoint (S2)", async () => {
  const disks = new Disks();
  {
    await using host = await memoryHost(robot, { disks });
    await ask(host, "add", 7);
  }
  await using host = await memoryHost(robot, { disks });
  assert.equal(await ask(host, "add", 1), 8);
  class Robot2 extends Robot {
    override add(by: number): number {
      return super.add(by * 100);
    }
  }
  host.deploy("v2", () => new Robot2() as unknown as SessionObject);
  assert.equal(await ask(host, "add", 1), 108, "with its state, by the new code");
  host.loseIsolates();
  assert.equal(await ask(host, "add", 1), 208, "whose log is replayed by the new code");
});

Deno.test("who asks again after the last request has that one's answer, where the end was not on record yet", async () => {
  await using host = await memoryHost(robot);
  assert.equal(await ask(host, "add", 5), 5);
  // As if its site had died when the commit was at the owners.
  host.twist((commit) => ({ ...commit, isEnded: false }));
  assert.equal(await askAs(host, "last", "close"), 5);
  host.twist((commit) => commit);
  host.loseIsolates();
  assert.equal(await askAs(host, "last", "close"), 5, "not that of one which began anew");
  // Who comes while it ends is told so (the router asks again).
  const added = await ask(host, "add", 1).catch(({ code }) => code === "ended" ? ask(host, "add", 1) : code);
  assert.equal(added, 1);
});

Deno.test("who asks again after the end has the last answer, until it was heard or somebody begins anew", async () => {
  await using host = await memoryHost(robot);
  assert.equal(await ask(host, "add", 5), 5);
  assert.equal(await askAs(host, "last", "close"), 5);
  assert.equal(await askAs(host, "last", "close"), 5, "its answer was lost on the way");
  host.loseIsolates();
  assert.equal(await askAs(host, "last", "close"), 5, "with its isolate gone, too");
  const begun = async () => {
    for (;;) {
      try {
        return await askAs(host, "next", "add", 1);
      } catch (error) {
        assert.equal((error as { code?: string }).code, "ended"); // the router asks again
      }
    }
  };
  assert.equal(await begun(), 1, "who comes meanwhile does not wait for that");
  assert.equal(await askAs(host, "last", "close"), 5, "nor does that end the next one");
  assert.equal(await ask(host, "add", 1), 2);
});

Deno.test("what was asked behind the request that ends a session does not wait until that one's answer is heard (EN3)", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "add", 5);
  const last = askAs(host, "last", "close"), behind = askAs(host, "behind", "add", 1);
  const late = Promise.withResolvers<"late">(), timer = setTimeout(() => late.resolve("late"), 5_000);
  const told = behind.catch(({ code }) => code);
  assert.equal(await Promise.race([told, late.promise]), "ended", "the router asks again");
  clearTimeout(timer);
  assert.equal(await last, 5);
  assert.equal(await askAs(host, "behind", "add", 1), 1, "it is run by the one that begins anew");
  assert.equal(await askAs(host, "last", "close"), 5, "whose answer nobody heard is kept");
});

Deno.test("a session whose last answer was heard has ended, and its log is gone", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "add", 5);
  await askAs(host, "last", "close");
  const rows = () => host.homes.rows({ limit: 10 });
  assert.equal((await rows())[0]?.ended, false, "it is not known yet who has the answer");
  host.host.received(NAME, "last");
  for (let i = 0; i < 1_000 && (await rows())[0]?.ended !== true; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await rows())[0]?.ended, true);
});

Deno.test("one that ends, or is removed, begins anew", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "add", 7);
  await ask(host, "close");
  const begun = async () => {
    try {
      return await ask(host, "add", 1);
    } catch (error) {
      assert.equal((error as { code?: string }).code, "ended");
      return await ask(host, "add", 1);
    }
  };
  assert.equal(await begun(), 1);
  await host.host.remove(NAME);
  assert.equal(await begun(), 1);
});

Deno.test("a session whose log can't go on stands still, and says why", async () => {
  await using host = await memoryHost(robot);
  await ask(host, "add", 7);
  // The same version does something else than its log says.
  class Other extends Robot {
    override add(): number {
      this.setTimer("x", 1_000);
      return 5;
    }
  }
  host.loseIsolates();
  host.deploy("v1", () => new Other() as unknown as SessionObject);
  await assert.rejects(ask(host, "add", 1), { code: "stateful_parked" });
  assert.equal(host.host.counts.parked, 1);
  assert.ok(host.lines.some((line) => line.includes("stands still")), host.lines.join("\n"));
});

Deno.test("the stateful session of the app API's program counts stamps, answers requests, and ends when idle", async () => {
  await using host = await memoryHost(() => new Card() as unknown as SessionObject);
  assert.deepEqual([await ask(host, "stamp", "mocha"), await ask(host, "stamp", "mocha")], [1, 2]);
  const call = encodeCall({
    kind: "fetch",
    method: "GET",
    url: "http://shop/card/r",
    headers: [],
    body: null,
  });
  const { answer } = await host.host.request(NAME, { request: "get", chain: [], bytes: call, token: null });
  const told = decodeAnswer(answer);
  assert.ok(told.kind === "response" && told.body !== null);
  assert.deepEqual([told.status, JSON.parse(new TextDecoder().decode(told.body))], [200, { mocha: 2 }]);
  assert.deepEqual(host.host.look(NAME)?.timers.map(({ name }) => name), ["idle"]);
});

class Bell extends Robot {
  static isBroken = true;
  rings = 0;
  override onTimer(name: string): void {
    this.rings++;
    if (Bell.isBroken) throw new Error(`${name} is broken`);
  }
  heard(): number {
    return this.rings;
  }
}

const bellOf = (whenThrown: string) => {
  class Made extends Bell {
    static whenThrown = whenThrown;
  }
  return () => new Made() as unknown as SessionObject;
};

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 3_000 && !await holds(); i++) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(await holds());
}

Deno.test("a move that is asked for while a session is opened again waits for that", async () => {
  const disks = new Disks();
  await using host = await memoryHost(robot, { disks });
  await ask(host, "add", 5);
  const release = disks.homes.hold();
  const added = ask(host, "add", 1);
  await new Promise((resolve) => setTimeout(resolve, 20)); // its commit waits for the disk
  host.loseIsolates();
  const moved = host.host.move(NAME, "elsewhere", 100);
  release();
  await assert.rejects(moved, { code: "move_refused", message: /there is no such site/ });
  assert.equal(await added, 6);
});

Deno.test("a timer that its handler sets anew for the same moment is called again, whatever comes behind it", async () => {
  class Chime extends Robot {
    override onTimer(name: string): void {
      super.onTimer(name);
      if ((this.log.get(name) ?? 0) < 3) this.setTimer(name, 0);
    }
  }
  const real = Date.now, stoodMs = real();
  Date.now = () => stoodMs;
  try {
    await using host = await memoryHost(() => new Chime() as unknown as SessionObject);
    const ring = ask(host, "ring", 0), slow = ask(host, "slow");
    await ring;
    await new Promise((resolve) => setTimeout(resolve, 5)); // the timer waits behind it, and then those
    await Promise.all([slow, ...[1, 2, 3, 4].map((by) => ask(host, "add", by))]);
    await until(async () => JSON.stringify(await ask(host, "all")).includes('[["bell",3]]'));
  } finally {
    Date.now = real;
  }
});

Deno.test("a timer whose handler throws is given up, and the log says so", async () => {
  Bell.isBroken = true;
  await using host = await memoryHost(bellOf("reject"));
  await ask(host, "ring", 1);
  await until(() =>
    /rejected timer "bell", it is given up: app_error: bell is broken/.test(host.lines.join())
  );
  Bell.isBroken = false;
  host.loseIsolates();
  assert.equal(await ask(host, "heard"), 0, "and does not go off after a replay either");
  assert.deepEqual(host.host.look(NAME)?.timers, []);
});

Deno.test("a timer whose handler throws is tried again where its class says so", async () => {
  Bell.isBroken = true;
  await using host = await memoryHost(bellOf("retry"));
  await ask(host, "ring", 1);
  await until(() => host.lines.join().includes("attempt 1, it is kept to be tried again"));
  Bell.isBroken = false;
  await until(async () => await ask(host, "heard") === 1);
});

Deno.test("a session whose class wants it parks when a handler throws, and goes on with other code", async () => {
  Bell.isBroken = true;
  await using host = await memoryHost(bellOf("park"));
  await ask(host, "ring", 1);
  await until(() => host.host.counts.parked === 1);
  await assert.rejects(ask(host, "heard"), {
    code: "stateful_parked",
    message: /handler_threw: the handler of timer "bell" threw: bell is broken/,
  });
  Bell.isBroken = false;
  host.deploy("v2", bellOf("park"));
  await until(async () => await ask(host, "heard") === 1);
});

Deno.test("a timer in whose handler an isolate ends is given up, and the session goes on (H3)", async () => {
  class Slow extends Robot {
    override async onTimer(): Promise<void> {
      begun.resolve();
      await sleep(60_000);
    }
  }
  await using host = await memoryHost(() => new Slow() as unknown as SessionObject);
  begun = Promise.withResolvers();
  await ask(host, "ring", 1);
  await handlerBegan();
  await until(() => (host.host.look(NAME)?.waiting ?? 0) > 0);
  host.loseIsolates("r");
  await until(() => host.lines.length > 0); // nobody has to ask for that
  assert.equal(await ask(host, "add", 1), 1);
  assert.match(host.lines.join(), /rejected timer "bell", it is given up: isolate_killed/);
});

Deno.test("a session that stands still does so after a restart, is not tried by itself, and can be resumed", async () => {
  const disks = new Disks();
  Bell.isBroken = true;
  let tries = 0;
  class Counted extends Bell {
    static whenThrown = "park";
    override onTimer(name: string): void {
      tries++;
      super.onTimer(name);
    }
  }
  const make = () => new Counted() as unknown as SessionObject;
  {
    await using host = await memoryHost(make, { disks });
    await ask(host, "ring", 1);
    await until(() => host.parked.get(NAME) !== null);
    assert.equal(tries, 1);
  }
  await using host = await memoryHost(make, { disks });
  assert.equal(host.host.counts.parked, 1);
  assert.equal(host.host.look(NAME)?.state, "parked");
  for (let i = 0; i < 3; i++) await assert.rejects(ask(host, "heard"), { code: "stateful_parked" });
  assert.equal(tries, 1, "nothing was tried again");
  const report = host.parked.get(NAME);
  assert.match(String(report?.detail["stack"]), /bell is broken[^]*host_test/);
  await host.host.resume(NAME);
  await until(() => tries === 2);
  await until(() => host.parked.get(NAME) !== null);
  Bell.isBroken = false;
  await host.host.resume(NAME);
  await until(async () => await ask(host, "heard") === 1);
  assert.deepEqual([host.parked.get(NAME), host.host.counts.parked], [null, 0]);
});

Deno.test("a method that a class has not makes no session of an id", async () => {
  await using host = await memoryHost(robot, { methods: ["add"] });
  await assert.rejects(ask(host, "vanish"), /robot of shop has no method vanish/);
  assert.deepEqual([host.homes.status().open, await host.homes.kept(NAME)], [0, null]);
  assert.equal(await ask(host, "add", 1), 1);
  await assert.rejects(ask(host, "vanish"), { code: "not_available" });
});
