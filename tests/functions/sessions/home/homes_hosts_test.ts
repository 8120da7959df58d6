/** Openings of stateful sessions that clients hold the log of (functions/sessions/log/hosts_asked.ts). */
import { strict as assert } from "node:assert";
import {
  HostOwners,
  HOSTS_MAX,
  hostsOf,
  isClient,
  leftBehindOf,
} from "../../../../functions/sessions/log/host_owners.ts";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import type { HostAnswer, HostsPort } from "../../../../functions/sessions/log/hosts_asked.ts";
import type { LogCopy } from "../../../../functions/sessions/log/asks.ts";
import { FORCED_MS } from "../../../../functions/sessions/log/limits.ts";
import { Cluster, commitOf, name } from "./cluster.ts";
import { decode, encode } from "../../../stateful/sim/program.ts";

/** Clients, by id: what they hold, as they would give it back. */
class Clients implements HostsPort {
  readonly logs = new Map<string, HostAnswer>();
  readonly asked: string[] = [];
  isSuperseded = false;
  onAsk = () => {};
  /** They have answered when this is over. */
  late = Promise.resolve();

  async ask(_name: unknown, epoch: number, hosts: readonly string[]) {
    this.asked.push(`${hosts.join(" ")} in ${epoch}`);
    this.onAsk();
    if (this.isSuperseded) return "superseded" as const;
    await this.late;
    const here = hosts.filter((host) => this.logs.has(host));
    return new Map(here.map((host) => [host, this.logs.get(host) ?? null]));
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

Deno.test("a client that holds nothing is off the record, also where another one is missing; not where nobody has a log (HO7)", async () => {
  const { all, clients, copy } = await started(1, ["c1", "c2", "c3"]);
  const recorded = async (of: Cluster) =>
    hostsOf((await of.of(of.homes(0).rows({ limit: 1 })))[0]?.owners ?? []);
  clients.logs.set("c1", copy);
  clients.logs.set("c2", null);
  await lost(all, true);
  await assert.rejects(all.open(2, "x"), refusal("stateful_unreachable", "c3"));
  assert.deepEqual(await recorded(all), ["c1", "c3"]);
  clients.logs.delete("c2");
  clients.logs.set("c3", copy);
  const home = (await all.open(2, "x")).start([]);
  assert.deepEqual([[...home.hosts.asked].sort(), home.hosts.leftBehind], [["c1", "c3"], []]);
  const alone = await started(0, ["c1"]);
  alone.clients.logs.set("c1", null);
  await lost(alone.all, true);
  await assert.rejects(alone.all.open(2, "x"), refusal("stateful_unreachable", "s1"));
  assert.deepEqual(await recorded(alone.all), ["c1"]);
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
  assert.equal(left, 0);
  await assert.rejects(all.open(0, "x"), refusal("stateful_unreachable", ...disks));
  // An operator may know that they are lost for good.
  const opened = await all.of(all.homes(0).open(name("x"), "v1", true));
  assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), ["r1", "r2"]);
});

Deno.test("an operator goes on without any disk when none has come for as long as clients are waited for (HO8)", async () => {
  for (const isBack of [true, false]) {
    const { all, clients, copy } = await started(1, ["c1", "c2"]);
    await all.pass(200); // others were told of r2
    clients.logs.set("c1", cut(copy, 1));
    for (const at of [1, 2]) all.site(at).crash(false);
    await all.pass(400);
    const opening = all.homes(0).open(name("x"), "v1", true);
    const begunMs = all.world.nowMs;
    await all.pass(FORCED_MS - 1_000);
    if (isBack) void all.site(2).start();
    const opened = await all.of(opening);
    assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), isBack ? ["r1", "r2"] : ["r1"]);
    if (!isBack) assert.ok(all.world.nowMs >= begunMs + FORCED_MS);
  }
});

Deno.test("the only disk, where it is back before all clients have answered, is asked, too (HO7)", async () => {
  const { all, clients, copy } = await started(0, ["c1"]);
  await all.pass(200);
  clients.logs.set("c1", cut(copy, 1)); // it holds back the end
  await lost(all, false);
  const late = Promise.withResolvers<void>();
  clients.late = late.promise;
  const opening = all.homes(2).open(name("x"), "v1");
  await all.pass(1_200);
  void all.site(1).start();
  await all.pass(300);
  late.resolve();
  assert.deepEqual((await all.of(opening)).log.map(({ bytes }) => decode(bytes)), ["r1", "r2"]);
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
  assert.deepEqual(await leftBehind(all), [["c2"], ["c2"]]);
  home.hosts.gone("c2");
  await all.pass(300);
  assert.deepEqual(await leftBehind(all), [[], []]);
});

/** Who is on record as left behind, and all clients that are on record at all. */
async function leftBehind(all: Cluster): Promise<readonly [readonly string[], readonly string[]]> {
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  const clients = (row?.owners ?? []).filter(isClient);
  return [leftBehindOf(clients), clients.map(({ site }) => site.slice(1)).filter((id) => id !== "c1")];
}

Deno.test("a client that was left behind is none of the next home's either, which asks nobody for it (HO8)", async () => {
  const { all, clients, copy } = await started(0, ["c2"]);
  await lost(all, false);
  void all.site(1).start();
  await all.pass(300);
  const forced = (await all.of(all.homes(1).open(name("x"), "v1", true))).start([]);
  await all.of(forced.settled()); // off the record, and not known yet to be no peer
  all.site(1).crash(false);
  void all.site(1).start();
  await all.pass(300);
  clients.asked.splice(0);
  clients.logs.set("c2", further(copy, 3));
  const home = (await all.open(1, "x")).start([]);
  assert.deepEqual([clients.asked, home.hosts.asked, home.hosts.leftBehind], [[], [], ["c2"]]);
  assert.equal(home.hosts.has("c2", 1), false);
  await all.of(home.settled());
  home.hosts.gone("c2");
  await all.pass(300);
  assert.deepEqual(await leftBehind(all), [[], []]);
});

Deno.test("a client whose log has no entry yet is left behind by nobody: it is a peer, and is sent what it lacks (HO8)", async () => {
  const { all, clients, copy } = await started(1, ["c1", "c2"]);
  clients.logs.set("c1", copy);
  clients.logs.set("c2", cut(copy, 0));
  await lost(all, true);
  const home = (await all.open(2, "x")).start([]);
  assert.deepEqual([[...home.hosts.asked].sort(), home.hosts.leftBehind], [["c1", "c2"], []]);
  assert.equal(home.hosts.has("c2", 2), true);
  await all.of(home.settled());
});

/** What a client holds that was told ahead of all disks. */
const further = (copy: LogCopy, entries: number): LogCopy => {
  const last = copy.pieces.at(-1);
  assert.ok(last !== undefined);
  const told = Array.from({ length: entries }, (_, i) => ({ ...last, first: last.first + last.count + i }));
  return { ...copy, pieces: [...copy.pieces, ...told] };
};

Deno.test("a client that was left behind counts no more, though its home dies before it is off the record", async () => {
  const { all, clients, copy } = await started(0, ["c1"]);
  await lost(all, false);
  void all.site(1).start();
  await all.pass(300);
  const forced = (await all.of(all.homes(1).open(name("x"), "v1", true))).start([]);
  all.site(0).crash(false); // the arbiter does not hear that it is to be off the record
  assert.deepEqual(forced.hosts.leftBehind, ["c1"]);
  void forced.commit(commitOf("r3")).catch(() => {});
  await all.pass(100);
  assert.equal(forced.released, 0);
  all.site(1).crash(false);
  for (const at of [0, 1]) void all.site(at).start();
  await all.pass(300);
  clients.logs.set("c1", further(copy, 3));
  const opened = await all.open(1, "x");
  assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), ["r1", "r2", "r3"]);
  const home = opened.start([]);
  assert.deepEqual([home.hosts.asked, home.hosts.leftBehind], [[], ["c1"]]);
  assert.equal(home.hosts.isAhead("c1"), false);
  await all.of(home.settled());
  await all.pass(300);
  home.hosts.gone("c1");
  await all.pass(300);
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(row?.owners.map(({ site }) => site), ["s1"]);
});

Deno.test("a client that has lost its log is left behind by nobody, also where the arbiter can't be asked", async () => {
  const { all, clients } = await started(0, ["c1"]);
  await lost(all, false);
  void all.site(1).start();
  await all.pass(300);
  clients.logs.set("c1", null);
  clients.onAsk = () => all.site(0).crash(false);
  const home = (await all.open(1, "x")).start([]);
  assert.deepEqual(home.hosts.leftBehind, []);
  assert.equal(home.hosts.isAhead("c1"), false);
  void all.site(0).start();
  await all.of(home.settled());
  await all.pass(300);
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(row?.owners.map(({ site }) => site), ["s1"]);
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

Deno.test("no more clients are on record than may be, where one that is to leave has been told what no disk has", async () => {
  const ids = Array.from({ length: HOSTS_MAX }, (_, i) => `c${i}`);
  const { all, home } = await started(0, ids);
  const recorded = async () => hostsOf((await all.of(all.homes(0).rows({ limit: 1 })))[0]?.owners ?? []);
  for (const host of ids) home.hosts.has(host, 2);
  await all.pass(200);
  home.hosts.told("c0", 3);
  home.hosts.drop("c0");
  assert.equal(home.hosts.has("late", 2), true);
  await all.pass(200);
  assert.deepEqual(await recorded(), ids, "who was told more than the disk has stays, and who comes waits");
  const held = home.commit(commitOf("r3"));
  for (const host of [...ids.slice(1), "late"]) home.hosts.has(host, 3);
  await all.of(held);
  await all.pass(200);
  assert.deepEqual(await recorded(), [...ids.slice(1), "late"]);
  assert.equal(home.hosts.has("one more", 3), false);
});

Deno.test("who lacks what others were told is not recorded beside one disk alone, also where there were two (HO3)", () => {
  const before = [{ site: "s1", disk: 1 }, { site: "s2", disk: 2 }, { site: "@c1", disk: 0 }];
  const hosts = new HostOwners(before, new Map([["c1", 5]]));
  hosts.opened(5);
  hosts.told("c1", 12);
  const wanted = (kept: number, disks: number) => {
    const owners = hosts.wanted({ released: 8, kept, disks });
    return owners && hostsOf(owners);
  };
  assert.deepEqual(wanted(8, 2), ["c1"]);
  assert.equal(wanted(8, 1), null, "it may not leave yet, and may not stay");
  assert.deepEqual(wanted(12, 1), [], "the disk has all that it was told");
  hosts.has("c1", 8);
  assert.deepEqual(wanted(8, 1), ["c1"], "it has all that others were told");
});
