/** What operators do about a stateful session that stands still, over real homes and logs, without processes. */
import assert from "node:assert/strict";
import { decodeAnswer, encodeCall } from "../../functions/calls/call.ts";
import { Session } from "../../functions/session.ts";
import type { SessionObject } from "../../functions/turns/handler.ts";
import type { StoreClient } from "../../functions/store_client.ts";
import { decodeValue, encodeValue } from "../../functions/value.ts";
import type { Homes } from "../../functions/homes/mod.ts";
import { EndedLogs } from "../../runtime/stateful/ended_logs.ts";
import { Mending } from "../../runtime/stateful/mending.ts";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { Disks, type MemoryHost, memoryHost } from "./memory_host.ts";

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
  const again = await mending.resume(NAME, { fromCheckpoint: false, isTrial: false, withoutClients: false });
  assert.deepEqual([again.state, /diverged/.test(again.problem ?? "")], ["parked", true]);
  const trial = await mending.resume(NAME, { fromCheckpoint: true, isTrial: true, withoutClients: false });
  assert.deepEqual([trial.state, trial.takenBack?.requests], ["parked", 2]);
  await assert.rejects(ask(host, "add", 0), { code: "stateful_parked" }, "a trial changes nothing");
  const resumed = await mending.resume(NAME, { fromCheckpoint: true, isTrial: false, withoutClients: false });
  assert.deepEqual([resumed.state, resumed.takenBack], ["open", trial.takenBack]);
  assert.equal(await ask(host, "add", 0), 7);
  host.loseIsolates();
  assert.equal(await ask(host, "add", 1), 8, "and its log is good from there on");
  await assert.rejects(
    mending.resume(NAME, { fromCheckpoint: false, isTrial: false, withoutClients: false }),
    {
      code: "stateful_running",
    },
  );
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
  for (let i = 0; i < 100_000 && (await host.homes.rows({ limit: 1 }))[0]?.ended !== true; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
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
  const taking = { fromCheckpoint: true, isTrial: false, withoutClients: false };
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
