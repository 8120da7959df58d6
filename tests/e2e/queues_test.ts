/** Queues over three sites, of which each message is at two: delivered, tried again, given up, and not lost with a site. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "queued");
const link = { rttMs: 12, mbps: 1_000 };
/** A busy machine holds a process up for a second or two: who is taken for dead so has its messages done twice. */
const owners = { suspectMs: 3_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud", owners },
    { id: "east", parent: "cloud", link, owners },
    { id: "west", parent: "cloud", link, owners },
  ],
};

interface Delivery {
  readonly name: string;
  readonly at: string;
  readonly attempt: number;
  readonly batch: number;
  readonly lateMs: number;
}

interface Sent {
  readonly body: Readonly<Record<string, unknown>>;
  readonly id?: string;
  readonly delayMs?: number;
  readonly ttlMs?: number;
}

const send = async (cluster: TestCluster, site: string, messages: readonly Sent[], queue = "jobs") =>
  await ask(`${cluster.url(site)}/queued/`, { method: "POST", body: JSON.stringify({ queue, messages }) });

async function sent(cluster: TestCluster, site: string, ...messages: Sent[]): Promise<void> {
  const answer = await send(cluster, site, messages);
  assert.equal(answer.status, 202, `${site}: ${answer.text}`);
}

/** As the root shows them. */
async function deliveries(cluster: TestCluster, name: RegExp): Promise<Delivery[]> {
  const all = JSON.parse((await ask(`${cluster.url("cloud")}/queued/`)).text) as Delivery[];
  return all.filter((one) => name.test(one.name)).sort((a, b) => a.attempt - b.attempt);
}

interface QueueStatus {
  readonly queue: string;
  readonly ready: number;
  readonly delayed: number;
  readonly lent: number;
  readonly dead: number;
}

async function status(cluster: TestCluster, site: string, queue = "jobs"): Promise<QueueStatus | undefined> {
  const { queues } = JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text) as {
    queues: QueueStatus[];
  };
  return queues.find((one) => one.queue === `queued/${queue}`);
}

const attempts = async (cluster: TestCluster, name: string): Promise<number[]> =>
  (await deliveries(cluster, new RegExp(`^${name}$`))).map(({ attempt }) => attempt);

async function delivered(cluster: TestCluster): Promise<void> {
  // Sites have just come to know each other.
  await eventually("east has another owner", async () => {
    return (await send(cluster, "east", [{ body: { name: "first" }, id: "first" }])).status === 202;
  });
  await sent(cluster, "east", ...Array.from({ length: 20 }, (_, i) => ({ body: { name: `many ${i}` } })));
  await eventually("all are handled", async () => (await deliveries(cluster, /^many/)).length === 20);
  const many = await deliveries(cluster, /^many/);
  assert.equal(new Set(many.map(({ name }) => name)).size, 20, "each once");
  assert(many.every(({ batch }) => batch <= 5) && many.some(({ batch }) => batch > 1), JSON.stringify(many));
  assert.deepEqual(await attempts(cluster, "first"), [1]);
}

async function triedAgain(cluster: TestCluster): Promise<void> {
  const tried = (name: string, times: number) =>
    eventually(`${name} was tried`, async () => (await attempts(cluster, name)).length >= times);
  // One after the other: what is handled together with one that fails comes again with it.
  await sent(cluster, "west", { body: { name: "asks", does: "retry" } });
  await tried("asks", 3);
  await sent(cluster, "west", { body: { name: "fails", does: "throw" } });
  await eventually("one is given up", async () => (await status(cluster, "west"))?.dead === 1);
  await tried("fails", 3);
  await sent(
    cluster,
    "west",
    { body: { name: "done", does: "says ack" } },
    { body: { name: "fails once", does: "throw once" } },
  );
  await tried("fails once", 2);
  assert.deepEqual(await attempts(cluster, "fails"), [1, 2, 3]);
  assert.deepEqual(await attempts(cluster, "asks"), [1, 2, 3]);
  assert.deepEqual(await attempts(cluster, "fails once"), [1, 2]);
  assert.deepEqual(await attempts(cluster, "done"), [1], "what it said before it failed stands");
  assert.match(cluster.log(), /on purpose/);
}

async function inTime(cluster: TestCluster): Promise<void> {
  await sent(cluster, "east", { body: { name: "later" }, delayMs: 800 });
  await sent(cluster, "east", { body: { name: "too late" }, delayMs: 400, ttlMs: 200 });
  await eventually("it is delivered", async () => (await attempts(cluster, "later")).length === 1);
  const [later] = await deliveries(cluster, /^later$/);
  assert((later?.lateMs ?? 0) >= 800, `after ${later?.lateMs} ms`);
  assert.deepEqual(await attempts(cluster, "too late"), []);
  assert.equal((await status(cluster, "east"))?.dead, 1, "it is kept, and not delivered");
}

async function storedOnce(cluster: TestCluster): Promise<void> {
  for (let i = 0; i < 3; i++) await sent(cluster, "west", { body: { name: "once" }, id: "once" });
  await eventually("it is delivered", async () => (await attempts(cluster, "once")).length > 0);
  await sent(cluster, "west", { body: { name: "once" }, id: "once" }, { body: { name: "last" } });
  await eventually(
    "what was sent after it is, too",
    async () => (await attempts(cluster, "last")).length > 0,
  );
  assert.deepEqual(await attempts(cluster, "once"), [1]);
}

async function refused(cluster: TestCluster): Promise<void> {
  const filling = "x".repeat(1_040_000), delayMs = 60_000;
  const rows: [queue: string, messages: Sent[], status: number, code: string][] = [
    ["jobs", [{ body: { name: 1 } }], 422, "message_invalid"],
    ["jobs", [{ body: { name: "a" }, id: "" }], 422, "message_invalid"],
    ["jobs", [{ body: { name: "a" }, delayMs: -1 }], 422, "message_invalid"],
    ["jobs", [{ body: { name: "a", filling } }], 413, "limit_message"],
    ["jobs", Array.from({ length: 501 }, () => ({ body: { name: "a" } })), 413, "limit_message"],
    ["wide", [{ body: { name: "a" } }], 503, "owners_too_few"],
    ["tiny", [{ body: { name: "a" }, delayMs }, { body: { name: "b" }, delayMs }], 503, "queue_full"],
  ];
  for (const [queue, messages, status, code] of rows) {
    const answer = await send(cluster, "east", messages, queue);
    assert.deepEqual([answer.status, JSON.parse(answer.text).code], [status, code], answer.text);
  }
  assert.equal((await status(cluster, "east", "tiny"))?.delayed, 1, "one of the two is stored");
}

async function comesBack(cluster: TestCluster): Promise<void> {
  const messages = Array.from({ length: 10 }, (_, i) => ({ body: { name: `stopped ${i}` }, delayMs: 1_500 }));
  await sent(cluster, "west", ...messages);
  await cluster.control("stop", "west");
  await cluster.control("start", "west");
  await cluster.ready("west");
  const names = async () => (await deliveries(cluster, /^stopped/)).map(({ name }) => name);
  await eventually("all are handled", async () => (await names()).length >= 10);
  assert.equal(new Set(await names()).size, 10);
  assert.equal((await names()).length, 10, "each once");
}

async function outlivesItsSite(cluster: TestCluster): Promise<void> {
  const hangsAt = "east", acknowledged: string[] = [];
  for (let i = 0; i < 30; i++) {
    const name = `kept ${i}`;
    if ((await send(cluster, "east", [{ body: { name, hangsAt } }])).status === 202) acknowledged.push(name);
  }
  assert.equal(acknowledged.length, 30);
  // Its own consumers have some of them, and come to no end.
  await eventually("some are under way", async () => ((await status(cluster, "east"))?.lent ?? 0) > 0);
  await cluster.control("kill", "east");
  const names = async () => new Set((await deliveries(cluster, /^kept/)).map(({ name }) => name));
  await eventually("all that was acknowledged is handled", async () => (await names()).size === 30);
  await eventually("nothing of it waits", async () => {
    const left = await Promise.all(["cloud", "west"].map((site) => status(cluster, site)));
    return left.every((one) => one === undefined || one.ready + one.lent + one.delayed === 0);
  });
}

Deno.test("messages are delivered, tried again, given up, stored once, and outlive their site", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology, apps: [APP] });
  try {
    await t.step("each is delivered once, several at a time", () => delivered(cluster));
    await t.step("one that fails comes again, until it is given up", () => triedAgain(cluster));
    await t.step("one is not early, and not delivered when it is worth nothing", () => inTime(cluster));
    await t.step("one id is stored once", () => storedOnce(cluster));
    await t.step("what can't be sent is told so (runtime/queues/sends.ts SE1)", () => refused(cluster));
    await t.step("what waits at a site that stops and starts is done once", () => comesBack(cluster));
    await t.step("what a site took before it was killed is done by others", () => outlivesItsSite(cluster));
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
