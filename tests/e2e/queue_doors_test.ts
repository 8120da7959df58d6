/** Programs outside that send to queues and pull from them, at any site of three, while sites are lost. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "pulled");
const link = { rttMs: 12, mbps: 1_000 };
const owners = { suspectMs: 3_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud", owners },
    { id: "east", parent: "cloud", link, owners },
    { id: "west", parent: "cloud", link, owners },
  ],
};

interface Pulled {
  readonly id: string;
  readonly lease: string;
  readonly attempts: number;
  readonly timestamp: string;
  readonly format: string;
  readonly body: unknown;
}

class Queue {
  constructor(readonly cluster: TestCluster, readonly site: string, readonly name: string) {}

  url(verb = ""): string {
    return `${this.cluster.url(this.site)}/_sojourn/queues/pulled/${this.name}${verb}`;
  }

  async post(verb: string, body: unknown, headers: Record<string, string> = {}) {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await ask(this.url(verb), { method: "POST", body: text, headers });
    return { status: answer.status, told: JSON.parse(answer.text) as Record<string, unknown> };
  }

  async sent(...bodies: unknown[]): Promise<string[]> {
    const { status, told } = await this.post("/batch", { messages: bodies.map((body) => ({ body })) });
    assert.equal(status, 202, JSON.stringify(told));
    return told["ids"] as string[];
  }

  async pulled(options: Record<string, number> = {}): Promise<Pulled[]> {
    const { status, told } = await this.post("/pull", { waitMs: 5_000, ...options });
    assert.equal(status, 200, JSON.stringify(told));
    return told["messages"] as Pulled[];
  }

  async one(options: Record<string, number> = {}): Promise<Pulled> {
    const [first, ...more] = await this.pulled({ messages: 1, ...options });
    assert.ok(first !== undefined && more.length === 0, `${more.length} more`);
    return first;
  }

  async said(verb: "ack" | "retry" | "extend" | "reject" | "release", of: readonly Pulled[], more = {}) {
    const { status, told } = await this.post(`/${verb}`, { leases: of.map(({ lease }) => lease), ...more });
    assert.equal(status, 200, JSON.stringify(told));
    return told["results"];
  }
}

async function sentFromOutside(cluster: TestCluster): Promise<void> {
  const east = new Queue(cluster, "east", "calls"), own = new Queue(cluster, "east", "own");
  // Sites have just come to know each other.
  await eventually("east has another owner", async () => (await own.post("", "first")).status === 202);
  const type = (name: string) => ({ "content-type": name });
  const rows: [body: string, headers: Record<string, string>, handled: string][] = [
    ['{"a":[1]}', type("application/json"), '{"a":[1]}'],
    ["grüße", type("text/plain; charset=utf-8"), '"grüße"'],
    ["\x01\x02", {}, "bytes 1,2"],
  ];
  for (const [place, [body, headers]] of rows.entries()) {
    const of = { ...headers, "sojourn-message-id": `m${place}` };
    const bytes = new TextEncoder().encode(body);
    const answer = await ask(own.url(), { method: "POST", body: bytes, headers: of });
    assert.deepEqual([answer.status, answer.text], [202, JSON.stringify({ id: `m${place}` })]);
  }
  const handled = async (id: string) => {
    const all = JSON.parse((await ask(`${cluster.url("cloud")}/pulled/`)).text) as {
      id: string;
      body: string;
    }[];
    return all.find((one) => one.id === id)?.body;
  };
  for (const [place, [, , body]] of rows.entries()) {
    await eventually(`${place} is handled`, async () => (await handled(`m${place}`)) === body);
  }
  assert.equal((await own.post("/pull", {})).told["code"], "queue_handled");
  const id = { "sojourn-message-id": "twice" };
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await east.post("", "once", id), { status: 202, told: { id: "twice" } });
  }
  const [twice, ...more] = await east.pulled({ waitMs: 1_000 });
  assert.deepEqual([twice?.id, more], ["twice", []], "accepted each time, stored once");
  assert.deepEqual(await east.said("ack", twice === undefined ? [] : [twice]), ["done"]);
}

async function refused(cluster: TestCluster): Promise<void> {
  const queue = (name: string) => new Queue(cluster, "west", name), calls = queue("calls");
  const long = "x".repeat(1_032_193), ttl = { "sojourn-message-ttl-ms": "0" };
  const many = { messages: Array.from({ length: 501 }, () => ({ body: 1 })) };
  const soon = { "sojourn-message-delay-ms": "soon" }, asJson = { "content-type": "application/json" };
  const tiny = queue("tiny");
  assert.equal((await tiny.post("", "a", { "sojourn-message-delay-ms": "60000" })).status, 202);
  const rows: [
    of: Queue,
    verb: string,
    body: unknown,
    headers: Record<string, string>,
    status: number,
    code: string,
  ][] = [
    [queue("none"), "", "a", {}, 404, "queue_unknown"],
    [queue("calls"), "/steal", "a", {}, 404, "not_found"],
    [tiny, "", "b", {}, 503, "queue_full"],
    [calls, "", long, {}, 413, "limit_message"],
    [calls, "", "{", asJson, 422, "message_invalid"],
    [calls, "", "a", soon, 422, "message_invalid"],
    [calls, "", "a", ttl, 422, "message_invalid"],
    [calls, "/batch", many, {}, 400, "query_invalid"],
    [calls, "/batch", { messages: [{ text: 1 }] }, {}, 400, "query_invalid"],
    [calls, "/pull", { messages: 0 }, {}, 400, "query_invalid"],
    [calls, "/pull", "no JSON", {}, 400, "query_invalid"],
    [calls, "/ack", { leases: ["made-up"] }, {}, 422, "lease_invalid"],
    [calls, "/ack", { leases: [] }, {}, 400, "query_invalid"],
  ];
  for (const [of, verb, body, headers, status, code] of rows) {
    const answer = await of.post(verb, body, headers);
    assert.deepEqual([answer.status, answer.told["code"]], [status, code], JSON.stringify(answer.told));
  }
  assert.equal((await ask(calls.url())).status, 405);
}

/** Tokens that may only send, or only consume, and of one queue. */
async function permitted(cluster: TestCluster): Promise<void> {
  const file = join(cluster.data, "admin-token");
  const before = (await Deno.readTextFile(file)).trimEnd();
  const lines = ["send:pulled/calls may-only-send-calls", "consume:pulled may-only-consume-from-all"];
  await Deno.writeTextFile(file, `${[before, ...lines].join("\n")}\n`);
  const calls = new Queue(cluster, "east", "calls"), tiny = new Queue(cluster, "east", "tiny");
  const by = (token: string) => ({ authorization: `Bearer ${token}` });
  const send = by("may-only-send-calls"), consume = by("may-only-consume-from-all");
  await eventually("the tokens are known", async () => (await calls.post("", "a", send)).status === 202);
  const rows: [of: Queue, verb: string, headers: Record<string, string>, status: number][] = [
    [calls, "/pull", send, 403],
    [tiny, "", send, 403],
    [calls, "", consume, 403],
    [new Queue(cluster, "east", "none"), "", consume, 403],
    [calls, "/pull", by("nobody-has-this-token"), 401],
    [tiny, "/pull", consume, 200],
  ];
  for (const [of, verb, headers, status] of rows) {
    const answer = await of.post(verb, verb === "" ? "a" : { waitMs: 0 }, headers);
    assert.equal(answer.status, status, JSON.stringify(answer.told));
  }
  assert.equal((await ask(`${cluster.url("east")}/_sojourn/status`, { headers: consume })).status, 403);
  const [one] = (await calls.post("/pull", { waitMs: 5_000 }, consume)).told["messages"] as Pulled[];
  assert.ok(one !== undefined);
  const stolen = await tiny.post("/ack", { leases: [one.lease] }, consume);
  assert.equal(stolen.told["code"], "lease_invalid", "a lease is of one queue (LS1)");
  assert.deepEqual(await calls.said("ack", [one]), ["done"]);
}

async function lent(cluster: TestCluster): Promise<void> {
  const east = new Queue(cluster, "east", "calls"), west = new Queue(cluster, "west", "calls");
  const cloud = new Queue(cluster, "cloud", "calls");
  // A pull that waits at one site gets what is sent at another.
  const waiting = west.pulled({ waitMs: 20_000 });
  await east.sent("long polled");
  const [polled, ...more] = await waiting;
  assert.deepEqual([polled?.body, polled?.attempts, more], ["long polled", 1, []]);
  assert.deepEqual(await cloud.said("ack", polled === undefined ? [] : [polled]), ["done"], "at any site");
  // What was sent before a pull is found, too, wherever it is.
  await east.sent("1", "2", "3");
  const three: Pulled[] = [];
  while (three.length < 3) three.push(...await west.pulled());
  assert.deepEqual(three.map(({ body }) => body).sort(), ["1", "2", "3"]);
  assert.deepEqual(await west.said("ack", three), ["done", "done", "done"]);
  // What functions send is shown as JSON.
  await ask(`${cluster.url("west")}/pulled/`, { method: "POST", body: '{"name":"from inside"}' });
  const inside = await west.one();
  assert.equal(inside.format, "json");
  assert.deepEqual(inside.body, { name: "from inside", bytes: { $bytes: "AQI=" }, big: { $bigint: "3" } });
  assert.deepEqual(await west.said("ack", [inside]), ["done"]);
}

async function triedAgain(cluster: TestCluster): Promise<void> {
  const east = new Queue(cluster, "east", "calls"), west = new Queue(cluster, "west", "calls");
  await east.sent("again");
  const first = await west.one();
  assert.deepEqual(await west.said("retry", [first], { delayMs: 50 }), ["done"]);
  const second = await east.one({ leaseMs: 1_000 });
  assert.deepEqual([second.id, second.attempts], [first.id, 2]);
  assert.deepEqual(await west.said("ack", [first]), ["done"], "an acknowledgement counts whenever it comes");
  assert.deepEqual(await east.said("extend", [second]), ["over"]);

  await east.sent("runs out", "has more time");
  const both: Pulled[] = [];
  while (both.length < 2) both.push(...await west.pulled({ leaseMs: 3_000 }));
  const held = both.find(({ body }) => body === "runs out");
  const longer = both.filter(({ body }) => body === "has more time");
  assert.ok(held !== undefined);
  assert.deepEqual(await west.said("extend", longer, { leaseMs: 60_000 }), ["done"]);
  const due = await west.one({ waitMs: 20_000, messages: 10 });
  assert.deepEqual([due.id, due.attempts], [held.id, 2], "its lease has ended: that was an attempt");
  assert.deepEqual(await west.said("extend", [held]), ["over"]);
  assert.deepEqual(await west.said("ack", longer), ["done"]);
  assert.deepEqual(await west.said("release", [due]), ["done"]);
  const third = await west.one();
  assert.deepEqual([third.id, third.attempts], [held.id, 2], "what nobody tried is no attempt");
  assert.deepEqual(await west.said("reject", [third], { error: "no such number" }), ["done"]);
  assert.deepEqual(await west.pulled({ waitMs: 400 }), [], "it is given up");
}

/** Messages of `f: 0` are watched by nobody, and found all the same. */
async function found(cluster: TestCluster): Promise<void> {
  const east = new Queue(cluster, "east", "alone"), west = new Queue(cluster, "west", "alone");
  await east.sent("alone");
  const alone = await west.one();
  assert.deepEqual([alone.body, await west.said("ack", [alone])], ["alone", ["done"]]);
}

async function goneClient(cluster: TestCluster): Promise<void> {
  const west = new Queue(cluster, "west", "calls"), gone = new AbortController();
  const waiting = fetch(west.url("/pull"), {
    method: "POST",
    body: JSON.stringify({ waitMs: 20_000 }),
    signal: gone.signal,
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  gone.abort();
  await assert.rejects(waiting);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await west.sent("for who is there");
  const one = await new Queue(cluster, "east", "calls").one();
  assert.deepEqual([one.body, one.attempts], ["for who is there", 1]);
  await west.said("ack", [one]);
}

async function sitesLost(cluster: TestCluster): Promise<void> {
  const east = new Queue(cluster, "east", "calls"), west = new Queue(cluster, "west", "calls");
  const cloud = new Queue(cluster, "cloud", "calls");
  await cloud.sent("pulled at a site that dies");
  const one = await west.one();
  await east.sent("owned by a site that dies", "and not acknowledged");
  const two: Pulled[] = [];
  while (two.length < 2) two.push(...await cloud.pulled({ leaseMs: 60_000 }));
  const done = two.find(({ body }) => body === "owned by a site that dies");
  assert.ok(done !== undefined);
  await Promise.all([cluster.control("kill", "west"), cluster.control("kill", "east")]);
  assert.deepEqual(
    await cloud.said("ack", [one]),
    ["done"],
    "the client has it still, and says so elsewhere",
  );
  await eventually("what the lost site lent is acknowledged at who took it over", async () => {
    const results = await cloud.said("ack", [done]) as string[];
    return results[0] === "done";
  });
  let again: Pulled | undefined;
  await eventually("what was not acknowledged comes again", async () => {
    [again] = await cloud.pulled();
    return again !== undefined;
  });
  assert.equal(again?.body, "and not acknowledged");
  assert.deepEqual(await cloud.said("ack", again === undefined ? [] : [again]), ["done"]);
  assert.deepEqual(await cloud.pulled({ waitMs: 1_500 }), [], "nothing comes twice");
}

Deno.test("programs outside send to queues and pull from them at any site, and lose nothing with one", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology, apps: [APP] });
  try {
    await t.step("what is sent is stored once, and handled as what it was", () => sentFromOutside(cluster));
    await t.step("what can't be done is told so", () => refused(cluster));
    await t.step("a token does what it says (http_door.ts QD1)", () => permitted(cluster));
    await t.step("messages are lent to who pulls, wherever they are", () => lent(cluster));
    await t.step("a message comes again, until it is given up", () => triedAgain(cluster));
    await t.step("messages that one site has alone are found", () => found(cluster));
    await t.step("a client that is gone has nothing (http_door.ts QD2)", () => goneClient(cluster));
    await t.step("neither the site of a pull nor an owner takes a message with it", () => sitesLost(cluster));
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
