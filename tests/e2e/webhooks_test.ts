/** Messages that are posted to an endpoint from a cluster of three sites, while one of them is killed. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const KEY = `whsec_${btoa("a key of twenty-four byt")}`;
const link = { rttMs: 12, mbps: 1_000 };
const owners = { suspectMs: 3_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud", owners },
    { id: "east", parent: "cloud", link, owners },
    { id: "west", parent: "cloud", link, owners },
  ],
};

const appAt = (port: number) => `
import { defineApp, queue } from "sojourn";
import * as z from "zod";
const to = (path, more = {}) =>
  queue({ schema: z.any(), webhook: { url: "http://127.0.0.1:${port}" + path, secret: "KEY" }, ...more });
export default defineApp({
  secrets: { KEY: {} },
  queues: {
    orders: to("/orders", { maxAttempts: 100, retryMinMs: 100, retryMaxMs: 1_000 }),
    ended: to("/gone"),
    inside: queue({ schema: z.any(), webhook: { url: "http://127.0.0.1:1/", secret: "KEY" }, maxAttempts: 1 }),
  },
  fetch: async (request, env) => {
    await env.queues.orders.send(await request.json(), { id: "from inside" });
    return new Response();
  },
});`;

/** Endpoint that verifies what comes, and takes the orders that it is told to. */
class Receiver {
  readonly taken = new Map<string, unknown>();
  readonly wrong: string[] = [];
  readonly #verifier = new Webhook(KEY);
  takes: (order: string) => boolean = () => true;
  readonly server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => this.#answer(request),
  );

  async #answer(request: Request): Promise<Response> {
    const text = await request.text(), id = request.headers.get("webhook-id") ?? "";
    let body: { readonly order?: string };
    try {
      body = this.#verifier.verify(text, Object.fromEntries(request.headers)) as typeof body;
    } catch (error) {
      this.wrong.push(`${id}: ${error}`);
      return new Response("not signed", { status: 401 });
    }
    if (new URL(request.url).pathname === "/gone") {
      return new Response("closed\x1b[31m for good", { status: 410 });
    }
    const order = body.order ?? id;
    if (!this.takes(order)) return new Response("not yet", { status: 500 });
    this.taken.set(order, body);
    return new Response(null, { status: 204 });
  }
}

/**
 * Messages for a queue, each of which is stored once its send is answered. One whose send was refused goes under another
 * id: with a site down that was to have it, the first is refused until that one is back.
 */
async function sent(
  cluster: TestCluster,
  site: string,
  queue: string,
  orders: readonly string[],
): Promise<void> {
  let tries = 0;
  const url = `${cluster.url(site)}/_sojourn/queues/posted/${queue}/batch`;
  await eventually(`${site} stores`, async () => {
    const suffix = tries++ === 0 ? "" : `~${tries}`;
    const body = JSON.stringify({
      messages: orders.map((order) => ({ id: order + suffix, body: { order } })),
    });
    const { status, text } = await ask(url, { method: "POST", body });
    assert.equal(status, 202, text);
    return true;
  });
}

async function sojourn(cluster: TestCluster, ...args: string[]): Promise<string> {
  const out: string[] = [], err: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url("cloud"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli(["queues", ...args], {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: (name) => env[name],
  });
  assert.equal(code, EXIT.done, err.join("\n"));
  return out.join("\n");
}

async function waits(cluster: TestCluster, receiver: Receiver): Promise<void> {
  await sent(cluster, "east", "orders", ["before"]);
  await eventually(
    "the queue says why it waits",
    async () => /posted\/orders +webhook, no secret KEY +1 /.test(await sojourn(cluster, "list", "posted")),
  );
  assert.deepEqual([...receiver.taken], []);
  const pulled = await ask(`${cluster.url("west")}/_sojourn/queues/posted/orders/pull`, { method: "POST" });
  assert.equal(JSON.parse(pulled.text).code, "queue_handled");
  const url = `${cluster.url("cloud")}/_sojourn/admin/apps/posted/secrets/KEY`;
  const headers = { authorization: `Bearer ${cluster.adminToken}` };
  assert.equal((await ask(url, { method: "PUT", body: KEY, headers })).status, 200);
  await eventually("what waited is posted", () => Promise.resolve(receiver.taken.has("before")));
  assert.match(await sojourn(cluster, "list", "posted"), /posted\/orders +webhook +/);
}

async function survives(cluster: TestCluster, receiver: Receiver): Promise<void> {
  const inside = await ask(`${cluster.url("west")}/posted/`, { method: "POST", body: '{"n":1}' });
  assert.equal(inside.status, 200, inside.text);
  const all = Array.from({ length: 120 }, (_, at) => `m${at}`);
  // Half of them are refused for as long as the site is there that has them.
  let isKilled = false;
  receiver.takes = (id) => isKilled || Number(id.slice(1)) % 2 === 0;
  await sent(cluster, "east", "orders", all.slice(0, 60));
  await eventually("some are taken", () => Promise.resolve(receiver.taken.has("m0")));
  await cluster.control("kill", "east");
  isKilled = true;
  await sent(cluster, "west", "orders", all.slice(60));
  await eventually("all have come", () => Promise.resolve(all.every((id) => receiver.taken.has(id))));
  for (const id of all) assert.deepEqual(receiver.taken.get(id), { order: id });
  assert.deepEqual(receiver.taken.get("from%20inside"), { n: 1 });
  assert.deepEqual(receiver.wrong, []);
}

async function givenUp(cluster: TestCluster): Promise<void> {
  await cluster.control("start", "east");
  await cluster.ready("east");
  await sent(cluster, "west", "ended", ["e1"]);
  await sent(cluster, "west", "inside", ["i1"]);
  const dead = (queue: string) => sojourn(cluster, "dead", "posted", queue);
  await eventually(
    "410 gives up",
    async () => /e1 .*attempts 1 +rejected: 410: closed/.test(await dead("ended")),
  );
  await eventually(
    "a private address that the operator does not name is refused",
    async () => /i1 .*attempts: refused: 127\.0\.0\.1 is not a public/.test(await dead("inside")),
  );
}

Deno.test("a queue's messages are posted to its endpoint, signed, and none is lost with a site", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-webhooks-" }), receiver = new Receiver();
  const topology = join(folder, "topology.json"),
    app = join(folder, "posted"),
    { port } = receiver.server.addr;
  await Deno.mkdir(app);
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await Deno.writeTextFile(join(app, "app.ts"), appAt(port));
  try {
    const cluster = await startCluster({ topology, apps: [app], reach: [`127.0.0.1:${port}`] });
    try {
      await t.step("messages wait for the secret, and it is told", () => waits(cluster, receiver));
      await t.step("a site that is killed takes none with it", () => survives(cluster, receiver));
      await t.step("what is over is given up, with the reason", () => givenUp(cluster));
    } finally {
      await cluster.stop();
    }
  } finally {
    await receiver.server.shutdown();
    await Deno.remove(folder, { recursive: true });
  }
});
