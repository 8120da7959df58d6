/** Origins: servers that know nothing of Sojourn, behind stateful sessions whose homes are killed. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const TILL = join(import.meta.dirname ?? ".", "apps", "till", "app.ts");
const link = { rttMs: 2, mbps: 1_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "edge-1", parent: "cloud", link, f: 1, owners: { sites: ["edge-2", "edge-3"] } },
    { id: "edge-2", parent: "cloud", link, f: 1, owners: { sites: ["edge-1", "edge-3"] } },
    { id: "edge-3", parent: "cloud", link },
  ],
};

/** A server that charges, and holds an answer back when it is told to. */
function shop() {
  const charged: { readonly cents: string; readonly key: string | null }[] = [];
  let hold: Promise<void> = Promise.resolve();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    charged.push({ cents: await request.text(), key: request.headers.get("idempotency-key") });
    const receipt = `receipt ${charged.length}`;
    await hold;
    return new Response(receipt);
  });
  return {
    ...{ server, charged },
    hold: () => {
      const held = Promise.withResolvers<void>();
      hold = held.promise;
      return held.resolve;
    },
  };
}

const charge = (cluster: TestCluster, site: string, cents: number) =>
  ask(`${cluster.url(site)}/till/t1/charges`, { method: "POST", body: `${cents}` });

Deno.test("an HTTP origin is charged once when the home dies while its answer is on the way", async (t) => {
  const { server, charged, hold } = shop();
  const folder = await Deno.makeTempDir({ prefix: "sojourn-origin-" });
  const app = join(folder, "till", "app.ts"), topology = join(folder, "topology.json");
  await Deno.mkdir(join(folder, "till"));
  const { port } = server.addr;
  await Deno.writeTextFile(app, (await Deno.readTextFile(TILL)).replace("127.0.0.1:9", `127.0.0.1:${port}`));
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  try {
    await using cluster = await startCluster({ topology, apps: [app], reach: [`127.0.0.1:${port}`] });
    await t.step("a charge reaches the origin by way of the root", async () => {
      const answer = await charge(cluster, "edge-1", 100);
      assert.deepEqual([answer.status, answer.text], [200, '["receipt 1"]']);
      assert.equal(charged.length, 1);
    });
    await t.step("only the origin is reached so", async () => {
      const answer = await ask(`${cluster.url("edge-1")}/till/t1/elsewhere`, {
        method: "POST",
        body: `http://127.0.0.1:${port + 1}/`,
      });
      assert.equal(answer.status, 502);
      assert.match(answer.text, /fetchHosts/);
    });
    await t.step("the home dies while the origin thinks", async () => {
      const release = hold();
      const asked = charge(cluster, "edge-1", 200).catch(() => null); // its connection dies with the site
      await eventually("the origin has the charge", () => Promise.resolve(charged.length === 2));
      await cluster.control("kill", "edge-1");
      await asked;
      // Whoever is asked for the till next goes on with the charge that was open, and then does this one.
      const next = charge(cluster, "edge-2", 300);
      release();
      const answer = await next;
      assert.deepEqual([answer.status, answer.text], [200, '["receipt 1","receipt 2","receipt 3"]']);
      assert.deepEqual(charged.map(({ cents }) => cents), ["100", "200", "300"], "nothing twice");
      assert.equal(new Set(charged.map(({ key }) => key)).size, 3);
    });
  } finally {
    await server.shutdown();
    await Deno.remove(folder, { recursive: true });
  }
});
