/** Stateful sessions whose hosts hold the log, over the host of stateful sessions: its runs, real homes, and a disk that is lost. */
import assert from "node:assert/strict";
import { PIECE_BYTES_MAX } from "../../../../functions/sessions/log/limits.ts";
import { type From, Session } from "../../../../functions/class/session.ts";
import type { PeerFeeds } from "../../../../functions/sessions/attach/mod.ts";
import { tag } from "../../../../functions/sessions/attach/frame_bytes.ts";
import { encodeSummary, HostLog } from "../../../../functions/sessions/sealed/mod.ts";
import type { StoreClient } from "../../../../functions/vocabulary/store_client.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { Mending } from "../../../../functions/sessions/serve/mending.ts";
import { packKey } from "../../../../store/model/key.ts";
import { Draws } from "../../../sim/random.ts";
import { check, Client, name, soon, until } from "../attach/host_client.ts";
import { HandHome, hello, keyOf } from "../attach/peer_pair.ts";
import { Disks, type MemoryHost, memoryHost } from "./memory_host.ts";

class Counter extends Session {
  count = 0;

  override onMessage(message: string | Uint8Array, from: From): void {
    from.send(`${++this.count} ${message}`);
  }
}

/** Writes down each message, and says so. */
class Writer extends Session<StoreClient> {
  override async onMessage(message: string | Uint8Array, from: From): Promise<void> {
    await this.env.commit([], [{ kind: "set", key: KEY, value: encodeValue(String(message)) }]);
    from.send(`1 ${message}`);
  }
}

/** Counts each message in a row. */
class Summer extends Session<StoreClient> {
  count = 0;

  override async onMessage(message: string | Uint8Array, from: From): Promise<void> {
    await this.env.commit([], [{ kind: "sum", key: KEY, value: encodeValue(1) }]);
    from.send(`${++this.count} ${message}`);
  }
}

const KEY = packKey(["kv", "written"]);
const counter = () => new Counter() as unknown as SessionObject;
const hosts = { durability: "hosts" } as const;

/** A client that holds the log. */
const holder = (host: MemoryHost, instance: number) => new Client(host, instance, new HostLog());

/** Hosts that the arbiter has on record. */
async function hasHosts({ homes }: MemoryHost): Promise<boolean> {
  const rows = await homes.rows({ limit: 10 });
  return rows.some(({ owners }) => owners.some(({ site }) => site.startsWith("@")));
}

const isAhead = ({ homes }: MemoryHost) => homes.status().counters["configured"] ?? 0;

Deno.test("a session goes on when its home and its only disk are gone, from what its host holds", async () => {
  const disks = new Disks();
  const first = await memoryHost(counter, { disks, ...hosts });
  const client = holder(first, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  await until("its host is on record", () => isAhead(first) > 1);
  for (let i = 1; i <= 5; i++) client.side.send(`m${i}`);
  await until("all is heard", () => client.heard.length === 5);
  disks.crash({ homes: true });
  const dead = first[Symbol.asyncDispose]();
  client.moveTo(null);
  client.side.send("m6");
  await using second = await memoryHost(counter, { disks, ...hosts });
  client.moveTo(second);
  client.connect();
  await until("it goes on", () => client.heard.length === 6 && client.side.acknowledged === 6);
  check([client], [["m1", "m2", "m3", "m4", "m5", "m6"]]);
  assert.equal(second.homes.status().counters["from_hosts"], 1);
  await client.end();
  await dead;
});

Deno.test("a session whose hosts hold the log goes on after rests and lost isolates, its host ahead again", async () => {
  await using host = await memoryHost(counter, { idleMs: 30, ...hosts });
  const client = holder(host, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  const sent: string[] = [];
  for (let i = 1; i <= 6; i++) {
    client.side.send(`m${i}`);
    sent.push(`m${i}`);
    await until("it is heard", () => client.heard.length === i);
    if (i % 2 === 0) host.loseIsolates();
    else await soon(150);
  }
  await until("all is in the log", () => client.side.acknowledged === 6);
  check([client], [sent]);
  client.side.close();
  await until("it has left", () => client.problem !== null);
  assert.match(client.problem ?? "", /"bye"/);
  await client.end();
});

Deno.test("what is written goes on where others wait for the hosts, and those for what is written", async () => {
  await using host = await memoryHost(() => new Writer() as unknown as SessionObject, hosts);
  const client = holder(host, 1), plain = new Client(host, 2);
  for (const each of [client, plain]) each.connect();
  await until("both are attached", () => [client, plain].every(({ side }) => side.stage === "open"));
  await until("its host is on record", () => isAhead(host) > 1);
  for (let i = 1; i <= 3; i++) {
    for (const each of [client, plain]) each.side.send(`m${i}`);
    await until("it is heard", () => client.heard.length === i && plain.heard.length === i);
  }
  await until("all is in the log", () => [client, plain].every(({ side }) => side.acknowledged === 3));
  const [row] = await host.replica.system.get([packKey(["a", "shop", "kv", "written"])]);
  assert.deepEqual(row?.value, encodeValue("m3"));
  for (const each of [client, plain]) await each.end();
});

Deno.test("a session that dies with a sum to be made goes on where a host is on record beside its only disk (RL4)", async () => {
  const disks = new Disks();
  const first = await memoryHost(() => new Summer() as unknown as SessionObject, { disks, ...hosts });
  const client = holder(first, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  await until("its host is on record", () => isAhead(first) > 1);
  const goOn = disks.rows.hold();
  client.side.send("m1");
  await until("its sum is in the log, and is to be made", () => disks.rows.waiting > 0);
  disks.crash();
  goOn(); // what a dead process waits for
  const dead = first[Symbol.asyncDispose]();
  client.moveTo(null);
  await using second = await memoryHost(() => new Summer() as unknown as SessionObject, { disks, ...hosts });
  client.moveTo(second);
  client.connect();
  client.side.send("m2");
  await until("it goes on", () => client.heard.length === 2 && client.side.acknowledged === 2);
  check([client], [["m1", "m2"]]);
  const [row] = await second.replica.system.get([packKey(["a", "shop", "kv", "written"])]);
  assert.deepEqual(row?.value && decodeValue(row.value), 2);
  await until("its host is on record again", () => isAhead(second) > 1);
  await client.end();
  await dead;
});

Deno.test("a session goes on when hosts are to hold its log no more: in the middle, and while nobody serves it", async () => {
  const disks = new Disks();
  const first = await memoryHost(counter, { disks, ...hosts });
  const client = holder(first, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  await until("its host is on record", () => isAhead(first) > 1);
  client.side.send("m1");
  await until("it is heard", () => client.heard.length === 1);
  disks.crash();
  const dead = first[Symbol.asyncDispose]();
  client.moveTo(null);
  await using second = await memoryHost(counter, { disks, durability: "owners" });
  client.moveTo(second);
  client.connect();
  client.side.send("m2");
  await until("it goes on", () => client.heard.length === 2 && client.side.acknowledged === 2);
  check([client], [["m1", "m2"]]);
  assert.equal(await hasHosts(second), false);
  await client.end();
  await dead;
});

Deno.test("a host is told before the disk has it, a plain peer and a caller when it has (session_peers.ts SP4)", async () => {
  const disks = new Disks();
  await using host = await memoryHost(counter, { disks, ...hosts });
  const ahead = holder(host, 1), plain = new Client(host, 2);
  for (const client of [ahead, plain]) client.connect();
  await until("both are attached", () => [ahead, plain].every(({ side }) => side.stage === "open"));
  ahead.side.send("first");
  await until("its host is on record", () => isAhead(host) > 1 && ahead.side.acknowledged === 1);
  // Hosts that are on record take their places when the home's own disk knows of it, too (live_home.ts H11).
  await soon(30);
  const goOn = disks.homes.hold();
  try {
    ahead.side.send("second");
    plain.side.send("third");
    await until("the host has heard", () => ahead.heard.length === 2);
    await soon(30);
    assert.deepEqual([plain.heard, plain.side.acknowledged, ahead.side.acknowledged], [[], 0, 1]);
  } finally {
    goOn(); // a host that is closed waits for its disks
  }
  await until("so has the other", () => plain.heard.length === 1 && ahead.side.acknowledged === 2);
  for (const client of [ahead, plain]) await client.end();
});

Deno.test("nobody waits for a host that takes nothing of what it is sent", async () => {
  await using host = await memoryHost(counter, { ...hosts });
  const mute = holder(host, 1), plain = new Client(host, 2);
  for (const client of [mute, plain]) client.connect();
  await until("both are attached", () => [mute, plain].every(({ side }) => side.stage === "open"));
  mute.side.send("first");
  await until("its host is on record", () => isAhead(host) > 1 && mute.side.acknowledged === 1);
  mute.isMute = true;
  const told = () => ({ of: plain.heard.length, in: plain.side.acknowledged });
  for (const message of ["second", "third"]) {
    plain.side.send(message);
    await until("it is told", () => told().of === told().in && told().of === plain.side.sent);
  }
  assert.equal(await hasHosts(host), false);
  for (const client of [mute, plain]) await client.end();
});

Deno.test("an operator opens a session without a client that holds its log and does not come back (HO8, mending.ts MD1)", async () => {
  const disks = new Disks();
  const first = await memoryHost(counter, { disks, ...hosts });
  const [lost, back] = [holder(first, 1), holder(first, 2)];
  for (const client of [lost, back]) client.connect();
  await until("both are attached", () => [lost, back].every(({ side }) => side.stage === "open"));
  back.side.send("m1");
  const onRecord = async () => (await first.homes.rows({ limit: 1 }))[0]?.owners.length === 3;
  for (let i = 0; i < 500 && !await onRecord(); i++) await soon(10);
  assert.ok(await onRecord(), "both are on record");
  await until("it is heard", () => back.heard.length === 1);
  disks.crash();
  const dead = first[Symbol.asyncDispose]();
  for (const client of [lost, back]) client.moveTo(null);
  await using second = await memoryHost(counter, { disks, ...hosts });
  const mending = new Mending({ ...second });
  const how = { fromCheckpoint: false, fromLog: false, isTrial: false, withoutClients: false };
  back.moveTo(second);
  back.connect();
  back.side.send("m2");
  await until("it can't be opened", () => second.host.look(name)?.state === "unreachable");
  const [row] = await second.homes.rows({ limit: 1 });
  const clients = row?.owners.flatMap(({ site }) => site.startsWith("@") ? [site.slice(1)] : []) ?? [];
  const missing = clients.filter((id) => second.host.look(name)?.problem?.includes(id));
  assert.equal(missing.length, 1, second.host.look(name)?.problem ?? "");
  await assert.rejects(mending.resume(name, how), { code: "stateful_running" });
  const resumed = await mending.resume(name, { ...how, withoutClients: true });
  assert.deepEqual([resumed.state, resumed.leftBehind], ["open", missing]);
  await until("it goes on", () => back.heard.length === 2);
  check([back], [["m1", "m2"]]);
  await assert.rejects(mending.resume(name, { ...how, withoutClients: true }), { code: "stateful_running" });
  lost.moveTo(second);
  lost.connect();
  await until("who was left behind begins anew", () => lost.problem !== null);
  await back.end();
  await lost.end();
  await dead;
});

Deno.test("nobody is told of a commit that could not be appended", async () => {
  await using host = await memoryHost(counter, { ...hosts });
  const client = holder(host, 1);
  client.connect();
  client.side.send("m1");
  await until("its host is on record", () => isAhead(host) > 1 && client.side.acknowledged === 1);
  let tries = 0;
  host.twist((commit) => {
    if (commit.outputs.length === 0) return commit;
    tries++;
    return { ...commit, entries: new Uint8Array(PIECE_BYTES_MAX + 1) };
  });
  client.side.send("m2");
  await until("it was tried", () => tries > 1);
  assert.deepEqual(client.heard, ["1 m1"]);
  host.twist((commit) => commit);
  await until("it goes on", () => client.heard.length === 2 && client.side.acknowledged === 2);
  check([client], [["m1", "m2"]]);
  await client.end();
});

Deno.test("commits that come at one go leave to a host in one record, with the first of their outputs (reach.ts PR1)", async () => {
  const home = new HandHome();
  let last = 0, told = 0;
  const feeds: PeerFeeds = {
    isAwaited: () => false,
    ...{
      attach: () => {},
      detach: () => {},
      forget: () => {},
      taken: () => {},
      late: () => {},
      again: () => {},
    },
    ...{ untaken: () => 0, sent: () => 0, reach: () => last },
    next: () => told === last ? [] : [Uint8Array.of(told = last)],
  };
  home.side.opened({
    ...{ epoch: 1, outputs: [], ahead: { feeds, released: 0, asked: [] } },
    peers: [{ kind: "client", id: "p", sent: 0, received: 0, isClosed: false }],
  });
  const line = home.line();
  const summary = encodeSummary({ promised: 0, tag: null });
  line.say(hello({ identity: { id: "p", key: keyOf("p") }, log: summary }));
  line.heard();
  for (last = 1; last < 4; last++) {
    const output = { to: "p", sequence: last, bytes: tag(`o${last}`) };
    home.side.appended({ entry: last, outputs: [output] });
  }
  last = 3;
  assert.deepEqual(line.heard(), [], "nothing leaves before all are there");
  await null;
  const said = line.heard().map((frame) =>
    frame.kind === "output" ? [frame.payload, frame.increment] : frame
  );
  assert.deepEqual(said, [["o1", Uint8Array.of(3)], ["o2", null], ["o3", null]]);
  home.side.over(null);
});

Deno.test("what a host says by itself is answered, so that its socket does not keep what it says next", () => {
  const home = new HandHome();
  home.side.opened({ epoch: 1, peers: [], outputs: [] });
  const line = home.line();
  line.say(hello());
  home.done();
  line.heard();
  for (const frame of [{ kind: "ack", received: 0 }, { kind: "taken", records: 1 }] as const) {
    line.say(frame);
    assert.deepEqual(line.heard(), [{ kind: "ack", received: 0 }]);
  }
});

// The last of this file: a process that died here goes on waiting, and its timers would end in a test after it.
Deno.test(
  "a class whose hosts hold the log no longer still asks those on record",
  { sanitizeOps: false, sanitizeResources: false },
  async () => {
    const disks = new Disks();
    const first = await memoryHost(counter, { disks, ...hosts });
    const client = holder(first, 1);
    client.connect();
    await until("its host is on record", () => isAhead(first) > 1);
    client.side.send("m1");
    await until("it is heard", () => client.heard.length === 1);
    disks.crash();
    const dead = first[Symbol.asyncDispose]();
    client.moveTo(null);
    await using second = await memoryHost(counter, { disks });
    client.moveTo(second);
    client.connect();
    client.side.send("m2");
    await until("it goes on", () => client.heard.length === 2);
    await until("nobody is on record", () => client.side.acknowledged === 2);
    check([client], [["m1", "m2"]]);
    client.side.send("m3");
    await until("it goes on", () => client.heard.length === 3);
    assert.equal(await hasHosts(second), false);
    await client.end();
    await dead;
  },
);

Deno.test(
  "nothing that anybody heard is contradicted, over homes that end with or without their disk, isolates, rests and channels",
  {
    sanitizeOps: false,
    sanitizeResources: false,
  },
  async () => {
    let wiped = 0;
    // 18: a base is on its way to the disk when the log is copied.
    for (const seed of [1, 2, 3, 18]) {
      const draws = new Draws(`host logs ${seed}`);
      const disks = new Disks();
      let host = await memoryHost(counter, { disks, idleMs: 30, ...hosts });
      const clients = [holder(host, 1), holder(host, 2), new Client(host, 3)];
      const sent: string[][] = clients.map(() => []);
      const ending: Promise<void>[] = [];
      for (const client of clients) client.connect();
      for (let round = 0; round < 80; round++) {
        const at = draws.integer(0, 2), message = `c${at} m${round}`;
        clients[at]?.side.send(message);
        sent[at]?.push(message);
        if (draws.chance(0.15)) clients[draws.integer(0, 2)]?.break();
        if (draws.chance(0.08)) host.loseIsolates();
        if (draws.chance(0.1)) {
          // Without a host on record the disk is all there is.
          const isLost = draws.chance(0.5) && await hasHosts(host);
          if (isLost) wiped++;
          disks.crash({ homes: isLost });
          ending.push(host[Symbol.asyncDispose]());
          for (const client of clients) client.moveTo(null);
          host = await memoryHost(counter, { disks, idleMs: 30, ...hosts });
          for (const client of clients) {
            client.moveTo(host);
            client.connect();
          }
        }
        if (draws.chance(0.1)) await soon(50);
        else if (draws.chance(0.7)) await soon(draws.integer(0, 8));
      }
      const isDone = ({ side }: Client) => side.acknowledged === side.sent && side.stage === "open";
      await until("all is in the log", () => clients.every(isDone));
      await until("all is heard", () => clients.every(({ heard }, at) => heard.length === sent[at]?.length));
      check(clients, sent);
      for (const client of clients) await client.end();
      await host[Symbol.asyncDispose]();
      await Promise.all(ending);
    }
    assert.ok(wiped > 0, "no disk was lost");
  },
);
