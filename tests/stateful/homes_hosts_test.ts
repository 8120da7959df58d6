/** Openings of stateful sessions that clients hold the log of (functions/homes/hosts_asked.ts). */
import { strict as assert } from "node:assert";
import { HomeError } from "../../functions/homes/mod.ts";
import type { HostAnswer, HostsPort } from "../../functions/homes/hosts_asked.ts";
import type { LogCopy } from "../../functions/homes/asks.ts";
import { Cluster, commitOf, name } from "./cluster.ts";
import { decode, encode } from "./sim/program.ts";

/** Clients, by id: what they hold, as they would give it back. */
class Clients implements HostsPort {
  readonly logs = new Map<string, HostAnswer>();
  readonly asked: string[] = [];
  isSuperseded = false;

  ask(_name: unknown, epoch: number, hosts: readonly string[]) {
    this.asked.push(`${hosts.join(" ")} in ${epoch}`);
    if (this.isSuperseded) return Promise.resolve("superseded" as const);
    const here = hosts.filter((host) => this.logs.has(host));
    return Promise.resolve(new Map(here.map((host) => [host, this.logs.get(host) ?? null])));
  }
}

/** What a client has of a log when it holds entries up to one. */
const cut = (copy: LogCopy, last: number): LogCopy => ({
  ...copy,
  pieces: copy.pieces.filter(({ first, count }) => first + count - 1 <= last),
});
const refusal = (code: string, ...words: readonly string[]) => (error: unknown) =>
  error instanceof HomeError && error.code === code && words.every((word) => error.message.includes(word));

/** A home at s1 with clients on record, which have been told all there is; `f` 0 or 1. */
async function started(f: number, hosts: readonly string[]) {
  const clients = new Clients();
  const all = await Cluster.start(3, f, { hosts: clients });
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  for (const host of hosts) home.hosts.has(host, 1);
  await all.pass(200);
  assert.ok(hosts.every((host) => home.hosts.isAhead(host)));
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(row?.owners.slice(f + 1).map(({ site }) => site), hosts.map((host) => `@${host}`));
  void home.commit(commitOf("r2")).catch(() => {});
  for (const host of hosts) home.hosts.told(host, 2);
  const copy = await all.of(home.copy());
  return { all, home, clients, copy };
}

/** The home's site dies at once, before its last commit is anywhere else. */
async function lost(all: Cluster, wipe: boolean): Promise<void> {
  all.site(1).crash(wipe);
  await all.pass(400);
}

Deno.test("a session is opened with the longest log of its clients and disks", async () => {
  const { all, clients, copy } = await started(1, ["c1", "c2"]);
  clients.logs.set("c1", cut(copy, 1));
  clients.logs.set("c2", copy);
  await lost(all, true);
  const opened = await all.open(2, "x");
  assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), ["r1", "r2"]);
  assert.deepEqual(clients.asked.at(-1), "c1 c2 in 2");
  const home = opened.start([]);
  assert.deepEqual([...home.hosts.asked].sort(), ["c1", "c2"]);
  await all.of(home.settled());
});

Deno.test("a session is not opened without a client on record, and says which is missing", async () => {
  const { all, clients, copy } = await started(1, ["c1", "c2"]);
  clients.logs.set("c1", copy);
  await lost(all, true);
  await assert.rejects(all.open(2, "x"), refusal("stateful_unreachable", "c2"));
  clients.logs.set("c2", null);
  assert.deepEqual((await all.open(2, "x")).log.length, 2);
});

Deno.test("clients alone open a session whose only disk is lost", async () => {
  const { all, home, clients, copy } = await started(0, ["c1"]);
  home.hosts.has("c1", 2);
  clients.logs.set("c1", copy);
  await lost(all, true);
  const opened = await all.open(2, "x");
  assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), ["r1", "r2"]);
  const next = opened.start([]);
  await all.of(next.settled());
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(row?.owners.map(({ site }) => site), ["s2", "@c1"]);
});

Deno.test("clients alone do not open a session that has other disks, and what is missing is named", async () => {
  const { all, clients, copy } = await started(1, ["c1"]);
  clients.logs.set("c1", copy);
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  const disks = row?.owners.filter(({ site }) => !site.startsWith("@")).map(({ site }) => site) ?? [];
  for (const site of disks) all.site(Number(site.slice(1))).crash(false);
  await all.pass(400);
  const left = [0, 1, 2].find((at) => !disks.includes(`s${at}`)) ?? 0;
  if (left === 0) await assert.rejects(all.open(0, "x"), refusal("stateful_unreachable", ...disks));
});

Deno.test("a session is not opened with one disk lost and nobody holding its log", async () => {
  const { all, clients } = await started(0, ["c1"]);
  clients.logs.set("c1", null);
  await lost(all, true);
  await assert.rejects(all.open(2, "x"), refusal("stateful_unreachable", "s1"));
});

Deno.test("with one disk others are told what all clients on record have", async () => {
  const { all, home } = await started(0, ["c1", "c2"]);
  const held = home.commit(commitOf("r3"));
  let isHeld = false;
  void held.then(() => isHeld = true);
  await all.pass(200);
  home.hosts.has("c1", 3);
  await all.pass(200);
  assert.equal(isHeld, false);
  home.hosts.has("c2", 3);
  await all.of(held);
  assert.equal(home.released, 3);
});

Deno.test("a client leaves the record when the disks have what it was told, and nobody waits for it then", async () => {
  const { all, home, clients } = await started(0, ["c1"]);
  home.hosts.drop("c1");
  await all.pass(300);
  assert.equal(home.hosts.isAhead("c1"), false);
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(row?.owners.map(({ site }) => site), ["s1"]);
  await all.of(home.commit(commitOf("r3")));
  assert.equal(clients.asked.length, 0);
});

Deno.test("an operator opens a session without a client: it is left behind, and off the record", async () => {
  const { all, clients, copy } = await started(1, ["c1", "c2"]);
  clients.logs.set("c1", cut(copy, 1));
  await lost(all, true);
  await assert.rejects(all.open(2, "x"), refusal("stateful_unreachable", "c2"));
  const opened = await all.of(all.homes(2).open(name("x"), "v1", true));
  const home = opened.start([]);
  assert.deepEqual([home.hosts.asked, home.hosts.leftBehind], [["c1"], ["c2"]]);
  assert.equal(home.hosts.isAhead("c2"), false);
  await all.of(home.settled());
  await all.pass(300);
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.ok(row?.owners.every(({ site }) => site !== "@c2"));
});

Deno.test("an opening that a client has promised to another is over", async () => {
  const { all, clients } = await started(1, ["c1"]);
  clients.isSuperseded = true;
  await lost(all, false);
  await assert.rejects(all.open(2, "x"), refusal("superseded"));
});

Deno.test("a log is copied whole, its base with the parts of its state, with all that was appended before", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const parts = [encode("one"), encode("two")];
  await all.of(home.checkpoint({ at: 1, bytes: encode("plain"), parts, version: "v1" }));
  void home.commit(commitOf("r2")).catch(() => {});
  const copy = await all.of(home.copy());
  assert.deepEqual([copy.base?.at, copy.parts.map(decode), copy.pieces.map(({ bytes }) => decode(bytes))], [
    1,
    ["one", "two"],
    ["r2"],
  ]);
});
