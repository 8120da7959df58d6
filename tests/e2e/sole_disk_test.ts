/** A drained site whose disk alone has messages and logs of sessions (f = 0), on real processes. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APPS = ["queued", "counter"].map((app) => join(import.meta.dirname ?? ".", "apps", app));
const TOPOLOGY = {
  sites: [{ id: "cloud" }, { id: "edge", parent: "cloud", link: { rttMs: 2, mbps: 1_000 } }],
};

async function sites(cluster: TestCluster, ...args: readonly string[]) {
  const out: string[] = [], err: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url("cloud"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli(["sites", ...args], {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: (name) => env[name],
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

Deno.test("a drained site is kept while messages and sessions are on its disk alone, and goes by force (D2)", async () => {
  const topology = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({ topology, apps: APPS });
  const messages = [1, 2].map((i) => ({ body: { name: `later ${i}` }, delayMs: 600_000 }));
  const sent = await ask(`${cluster.url("edge")}/queued/`, {
    method: "POST",
    body: JSON.stringify({ queue: "near", messages }),
  });
  assert.equal(sent.status, 202, sent.text);
  const called = await ask(`${cluster.url("edge")}/counter/mine/call/add`, { method: "POST", body: "[1]" });
  assert.equal(called.status, 200, called.text);
  const drained = await sites(cluster, "drain", "edge", "--for", "5m");
  const alone = "logs of stateful sessions \\(1\\), messages of the queue near of queued \\(2\\)";
  assert.equal(drained.code, EXIT.done, drained.err);
  assert.match(drained.out, new RegExp(`on its disk alone: ${alone}; keep it`));
  await eventually("its process has ended", async () => {
    const { down } = JSON.parse((await ask(`${cluster.url("cloud")}/_sojourn/admin/chaos`)).text);
    return down.includes("edge");
  });
  await eventually("its parent has noticed", async () => {
    const { out } = await sites(cluster, "remove", "edge", "--json");
    const { error: { code, message } } = JSON.parse(out) as { error: { code: string; message: string } };
    if (code === "site_connected") return false;
    assert.equal(code, "site_held");
    assert.match(message, new RegExp(`${alone} were on its disk alone: start edge`));
    return true;
  });
  const forced = await sites(cluster, "remove", "edge", "--force");
  assert.equal(forced.code, EXIT.done, forced.err);
  await Deno.remove(topology);
});
