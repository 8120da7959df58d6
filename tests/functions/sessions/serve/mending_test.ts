/** What operators do about a stateful session that stands still, over real homes and logs, without processes. */
import assert from "node:assert/strict";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import { SessionState } from "../../../../functions/tracked/mod.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import type { StoreClient } from "../../../../functions/vocabulary/store_client.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import type { Homes } from "../../../../functions/sessions/home/mod.ts";
import { EndedLogs } from "../../../../functions/sessions/serve/ended_logs.ts";
import { Mending } from "../../../../functions/sessions/serve/mending.ts";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";
import { Disks, type MemoryHost, memoryHost, sleep } from "./memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };
let requests = 0;

/** Counts; what its module counts is in no log. */
class Counter extends Session<StoreClient> {
  static escaped = 0;
  count = 0;
  add(by: number): number {
    return this.count += by;
  }
  leak(): number {
    return Counter.escaped++;
  }
  close(): void {
    this.end();
  }
  say(text: string): number {
    return text.length;
  }
}

const make = () => new Counter() as unknown as SessionObject;

async function ask(host: MemoryHost, method: string, ...args: unknown[]): Promise<unknown> {
  const request = `request-${requests++}`;
  const bytes = encodeCall({ kind: "rpc", method, args: encodeValue(args) });
  const { answer } = await host.host.request(NAME, { request, chain: [], bytes, token: null });
  host.host.received(NAME, request);
  const told = decodeAnswer(answer);
  if (told.kind === "error") throw Object.assign(new Error(told.message), { code: told.code });
  return told.kind === "value" ? decodeValue(told.value) : undefined;
}

const mendingOf = ({ homes, host, apps }: MemoryHost) => new Mending({ homes, host, apps });

async function rested(host: MemoryHost): Promise<void> {
  for (let i = 0; i < 3_000 && host.host.counts.open > 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(host.host.counts.open, 0);
}

/** 7 in its checkpoint, 8 in the log after it, and a replay that does otherwise. */
async function diverged(disks: Disks): Promise<void> {
  Counter.escaped = 0;
  await using host = await memoryHost(make, { disks, idleMs: 0 });
  assert.equal(await ask(host, "add", 7), 7);
  await rested(host);
  assert.equal(await ask(host, "add", 1), 8);
  assert.equal(await ask(host, "leak"), 0);
  host.loseIsolates();
  await assert.rejects(ask(host, "add", 1), { code: "stateful_parked", message: /diverged/ });
  await host.parked.settled();
}

Deno.test("a session that did otherwise at a replay is resumed from its checkpoint, when that was said", async () => {
  const disks = new Disks();
  await diverged(disks);
  await using host = await memoryHost(make, { disks });
  const mending = mendingOf(host);
  const report = host.parked.get(NAME);
  assert.match(report?.message ?? "", /replay of entry \d+ \(request\) did other things/);
  assert.match(JSON.stringify(report?.detail["did"]), /output 1 to request-\d+, \d+ bytes/);
  const again = await mending.resume(NAME, {
    fromCheckpoint: false,
    fromLog: false,
    isTrial: false,
    withoutClients: false,
  });
  assert.deepEqual([again.state, /diverged/.test(again.problem ?? "")], ["parked", true]);
  const trial = await mending.resume(NAME, {
    fromCheckpoint: true,
    fromLog: false,
    isTrial: true,
    withoutClients: false,
  });
  assert.deepEqual([trial.state, trial.takenBack?.requests], ["parked", 2]);
  await assert.rejects(ask(host, "add", 0), { code: "stateful_parked" }, "a trial changes nothing");
  const resumed = await mending.resume(NAME, {
    fromCheckpoint: true,
    fromLog: false,
    isTrial: false,
    withoutClients: false,
  });
  assert.deepEqual([resumed.state, resumed.takenBack], ["open", trial.takenBack]);
  assert.equal(await ask(host, "add", 0), 7);
  host.loseIsolates();
  assert.equal(await ask(host, "add", 1), 8, "and its log is good from there on");
  await assert.rejects(
    mending.resume(NAME, { fromCheckpoint: false, fromLog: false, isTrial: false, withoutClients: false }),
    {
      code: "stateful_running",
    },
  );
});

/** A later version of `Counter`: its sum is kept in another field. */
class Sum extends Session<StoreClient> {
  static shape = 1;
  sum = 0;
  note = "none";
  add(by: number): number {
    return this.sum += by;
  }
  override migrate(old: Record<string, unknown>): void {
    this.sum = Number(old["count"]);
    if ("note" in old) this.note = String(old["note"]);
  }
  noted(): string {
    return this.note;
  }
}

const FROM_LOG = { fromCheckpoint: false, fromLog: true, isTrial: false, withoutClients: false };
const TRIAL = { ...FROM_LOG, isTrial: true };

Deno.test("a session that did otherwise at a replay is taken on by another version, from as much of its log as agrees (mending.ts MD2)", async () => {
  const disks = new Disks();
  const endedLogs = await EndedLogs.open({
    ...{ storage: new MemoryStorage(), nowMs: () => Date.now(), keptMsMax: 60_000, isApp: () => true },
    note: (event) => assert.fail(event),
  });
  await diverged(disks);
  await using host = await memoryHost(make, { disks, ends: { endedLogs } });
  host.deploy("v2", () => new Sum() as unknown as SessionObject);
  await assert.rejects(ask(host, "add", 1), { code: "stateful_parked" }, "its log needs the version before");
  await host.parked.settled();
  const mending = mendingOf(host);
  const trial = await mending.resume(NAME, TRIAL);
  assert.ok(trial.takenBack);
  const { why, checkpoint, ...told } = trial.takenBack;
  assert.match(why ?? "", /replay of entry \d+ \(request\) did other things/);
  assert.deepEqual(told, { entries: 1, requests: 1, messages: 0, timers: 0, open: [], leftOut: [] });
  assert.ok(checkpoint > 2);
  await assert.rejects(ask(host, "add", 0), { code: "stateful_parked" }, "a trial changes nothing");
  const resumed = await mending.resume(NAME, FROM_LOG);
  assert.deepEqual([resumed.state, resumed.takenBack?.checkpoint], ["open", checkpoint]);
  assert.equal(await ask(host, "add", 0), 8, "what was in its log, and in no checkpoint, is there");
  const { entries } = await new Mending({ ...host, endedLogs }).log(NAME, { from: 1, isEnded: true });
  assert.deepEqual(
    entries.flatMap(({ method }) => method ?? []),
    ["add", "leak"],
    "and all of it can be read",
  );
  host.loseIsolates();
  assert.equal(await ask(host, "add", 1), 9, "and its log is good from there on");
});

Deno.test("what of a session could be kept is there as well where it ends before it goes on", async () => {
  const disks = new Disks();
  await diverged(disks);
  {
    await using host = await memoryHost(make, { disks });
    const { host: of } = host;
    const resume = () => Promise.reject(new Error("its site is lost"));
    const lost = new Mending({
      ...{ homes: host.homes, apps: host.apps },
      host: {
        look: (name) => of.look(name),
        reset: (name) => of.reset(name),
        openings: of.openings,
        keepLog: (name) => of.keepLog(name),
        resume,
      },
    });
    assert.equal((await lost.resume(NAME, FROM_LOG)).state, "parked");
  }
  await using host = await memoryHost(make, { disks });
  const again = { ...FROM_LOG, fromLog: false };
  assert.deepEqual(await mendingOf(host).resume(NAME, again), {
    ...{ state: "open", problem: null, takenBack: null, leftBehind: [] },
  });
  assert.equal(await ask(host, "add", 0), 8);
});

Deno.test("a session that never rests is taken on with its fields, and what was open is named (turn/salvage.ts SV2)", async () => {
  class Waits extends Counter {
    override add(by: number): number {
      void sleep(3_600_000);
      return super.add(by);
    }
  }
  const waits = () => new Waits() as unknown as SessionObject;
  await using host = await memoryHost(waits);
  for (let sum = 1; sum <= 3; sum++) assert.equal(await ask(host, "add", 1), sum);
  Counter.escaped = 0;
  assert.equal(await ask(host, "leak"), 0);
  host.loseIsolates();
  await assert.rejects(ask(host, "add", 1), { code: "stateful_parked", message: /diverged/ });
  await host.parked.settled();
  host.deploy("v2", () => new Sum() as unknown as SessionObject);
  await assert.rejects(ask(host, "add", 1), { code: "stateful_parked" });
  await host.parked.settled();
  const { takenBack } = await mendingOf(host).resume(NAME, FROM_LOG);
  const hour = "a closure timer of 3600000 ms";
  assert.deepEqual([takenBack?.requests, takenBack?.open], [1, [hour, hour, hour]]);
  assert.equal(await ask(host, "add", 1), 4);
});

Deno.test("what no checkpoint holds, in a log of before that was looked for, is given up by name, and nothing else (mending.ts MD3)", async () => {
  class Before extends Counter {
    note = "kept";
    late: unknown = 1;
    override add(by: number): number {
      this.late = () => by;
      return super.add(by);
    }
  }
  const disks = new Disks();
  const { check } = SessionState.prototype;
  SessionState.prototype.check = () => {};
  try {
    await using host = await memoryHost(() => new Before() as unknown as SessionObject, { disks });
    assert.equal(await ask(host, "add", 7), 7);
    host.loseIsolates();
  } finally {
    SessionState.prototype.check = check;
  }
  await using host = await memoryHost(() => new Before() as unknown as SessionObject, { disks });
  host.deploy("v2", () => new Sum() as unknown as SessionObject);
  await assert.rejects(ask(host, "add", 1), {
    code: "stateful_parked",
    message: /state_invalid: can't keep late/,
  });
  await host.parked.settled();
  const { state, takenBack } = await mendingOf(host).resume(NAME, FROM_LOG);
  assert.deepEqual([state, takenBack?.entries, takenBack?.why], ["open", 0, null]);
  assert.match(takenBack?.leftOut.join() ?? "", /^can't keep late: a function/);
  assert.equal(await ask(host, "add", 1), 8);
  assert.equal(await ask(host, "noted"), "kept");
});

Deno.test("a session that is reset begins anew, and is no longer said to stand still", async () => {
  const disks = new Disks();
  await diverged(disks);
  await using host = await memoryHost(make, { disks });
  await mendingOf(host).reset(NAME);
  assert.equal(host.parked.get(NAME), null);
  assert.equal(await ask(host, "add", 1), 1);
});

Deno.test("a session that is reset is blank at the same home, and its log is kept as that of one that ended", async () => {
  const disks = new Disks();
  const endedLogs = await EndedLogs.open({
    ...{ storage: new MemoryStorage(), nowMs: () => Date.now(), keptMsMax: 60_000, isApp: () => true },
    note: (event) => assert.fail(event),
  });
  await diverged(disks);
  await using host = await memoryHost(make, { disks, ends: { endedLogs } });
  const mending = new Mending({ ...host, endedLogs });
  const before = await mending.log(NAME, { from: 1, isEnded: false });
  assert.equal(await mending.reset(NAME), true);
  assert.equal(host.host.look(NAME)?.state, "open");
  const [row] = await host.homes.rows({ limit: 1 });
  assert.deepEqual([row?.site, row?.ended], ["cloud", false]);
  const { endedMs, ...ended } = await mending.log(NAME, { from: 1, isEnded: true });
  assert.ok(endedMs !== null);
  assert.deepEqual(ended.entries, before.entries);
  assert.notEqual((await mending.log(NAME, { from: 1, isEnded: false })).epoch, before.epoch);
  await host.host.remove(NAME);
  await assert.rejects(mending.log(NAME, { from: 1, isEnded: false }), { code: "not_found" });
  await assert.rejects(mending.forget(NAME), { code: "not_found" }, "delete leaves nothing");
});

Deno.test("the log of a session that has called end() can be read until it is forgotten", async () => {
  const endedLogs = await EndedLogs.open({
    ...{ storage: new MemoryStorage(), nowMs: () => Date.now(), keptMsMax: 60_000, isApp: () => true },
    note: (event) => assert.fail(event),
  });
  await using host = await memoryHost(make, { ends: { endedLogs } });
  const mending = new Mending({ ...host, endedLogs });
  await ask(host, "add", 7);
  await ask(host, "close");
  for (let i = 0; i < 100_000 && await host.homes.kept(NAME) !== null; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const [row] = await host.homes.rows({ limit: 1 });
  assert.equal(row?.ended, true);
  const { endedMs, entries } = await mending.log(NAME, { from: 1, isEnded: false });
  assert.ok(endedMs !== null);
  assert.deepEqual(entries.flatMap(({ method }) => method ?? []), ["add", "close"]);
  await mending.forget(NAME);
  await assert.rejects(mending.log(NAME, { from: 1, isEnded: false }), { code: "not_found" });
});

Deno.test("a log is shown with what was called, large contents shortened, and no seed", async () => {
  await using host = await memoryHost(make, { idleMs: 0 });
  await ask(host, "add", 7);
  await rested(host);
  await ask(host, "say", "x".repeat(5_000));
  await assert.rejects(ask(host, "add", 1n));
  const mending = mendingOf(host);
  const view = await mending.log(NAME, { from: 1, isEnded: false });
  assert.equal(typeof view.checkpoint?.["at"], "number");
  const kinds = view.entries.map(({ kind }) => kind);
  assert.deepEqual(kinds, ["request", "rejected"]);
  const [said] = view.entries;
  assert.equal(said?.["method"], "say");
  assert.match(JSON.stringify(said?.["args"]), /^\["x{200}… \(5000 characters\)"\]$/);
  assert.deepEqual((await mending.log(NAME, { from: view.last, isEnded: false })).entries.length, 1);
  await assert.rejects(mending.log({ ...NAME, id: "none" }, { from: 1, isEnded: false }), {
    code: "not_found",
  });
});

Deno.test("a session that is asked while it is deleted is served then, and afterwards", async () => {
  const disks = new Disks();
  await diverged(disks);
  await using host = await memoryHost(make, { disks });
  const written = Promise.withResolvers<void>(), drop = host.parked.drop.bind(host.parked);
  host.parked.drop = (name) => drop(name).then(() => written.promise);
  const removed = host.host.remove(NAME);
  for (let i = 0; i < 1_000 && host.parked.get(NAME) !== null; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const asked = ask(host, "add", 1);
  for (let i = 0; i < 300 && host.host.counts.open === 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.equal(host.host.counts.open, 1);
  written.resolve();
  await removed;
  assert.equal(await asked, 1);
  assert.equal(await ask(host, "add", 1), 2);
});

Deno.test("a session whose log could not be taken back can be resumed all the same", async () => {
  const disks = new Disks();
  await diverged(disks);
  await using host = await memoryHost(make, { disks });
  const open: Homes["open"] = async (...asked) => {
    const opened = await host.homes.open(...asked);
    const start = opened.start.bind(opened);
    opened.start = (answers) =>
      Object.assign(start(answers), { checkpoint: () => Promise.reject(new Error("a disk that is full")) });
    return opened;
  };
  const taking = { fromCheckpoint: true, fromLog: false, isTrial: false, withoutClients: false };
  const full = new Mending({ ...host, homes: { open, kept: (name) => host.homes.kept(name) } });
  await assert.rejects(full.resume(NAME, taking), /a disk that is full/);
  assert.equal((await mendingOf(host).resume(NAME, taking)).state, "open");
});

Deno.test("who asks for a session that rests while it is deleted begins it anew", async () => {
  const disks = new Disks();
  await using host = await memoryHost(make, { disks, idleMs: 0 });
  assert.equal(await ask(host, "add", 7), 7);
  await rested(host);
  const goOn = disks.arbiter.hold();
  const removed = host.host.remove(NAME);
  await new Promise((resolve) => setTimeout(resolve));
  const asked = ask(host, "add", 1);
  await new Promise((resolve) => setTimeout(resolve));
  goOn();
  await removed;
  assert.equal(await asked, 1);
});
