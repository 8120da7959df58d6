/** Stateful sessions whose home is taken off the tree, on real processes: their logs are at their owners. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "counter");
const link = (rttMs: number) => ({ rttMs, mbps: 1_000 });
const edge = (id: string) => ({ id, parent: "core-1", link: link(2), f: 1 });
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core-1", parent: "cloud", link: link(10) },
    ...["edge-1", "edge-2", "edge-3", "edge-4"].map(edge),
  ],
};

async function call(cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) {
  const url = `${cluster.url(site)}/counter/${id}/call/${method}`;
  const answer = await ask(url, { method: "POST", body: JSON.stringify(args) });
  assert.equal(answer.status, 200, `${site} ${id}.${method}: ${answer.status} ${answer.text}`);
  return (JSON.parse(answer.text) as { result: unknown }).result;
}

async function cli(cluster: TestCluster, ...args: readonly string[]): Promise<string> {
  const out: string[] = [], err: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url("cloud"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli([...args, "--json"], {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: (name) => env[name],
  });
  assert.equal(code, EXIT.done, `${args.join(" ")}: ${out.join()} ${err.join()}`);
  return out.join("\n");
}

async function homeOf(cluster: TestCluster, id: string): Promise<string> {
  return JSON.parse(await cli(cluster, "sessions", "show", "counter", "counter", id)).home as string;
}

/** Sessions at home at a site: one that touched no row, one that wrote one, one that read what it had written. */
async function begun(cluster: TestCluster, site: string): Promise<string[]> {
  const ids = ["plain", "writes", "reads"].map((what) => `${what}-${site}`);
  for (const id of ids) assert.equal(await call(cluster, site, id, "add", 1), 1);
  await call(cluster, site, `writes-${site}`, "put", "tea");
  assert.equal(await call(cluster, site, `reads-${site}`, "keep", "milk"), "milk 1");
  for (const id of ids) assert.equal(await homeOf(cluster, id), site);
  return ids;
}

async function goOn(cluster: TestCluster, ids: readonly string[], without: string): Promise<void> {
  for (const id of ids) {
    assert.equal(await call(cluster, "edge-4", id, "add", 1), 2);
    assert.notEqual(await homeOf(cluster, id), without);
  }
  assert.equal(await call(cluster, "edge-4", `writes-${without}`, "got"), "tea 1");
  assert.equal(await call(cluster, "edge-4", `reads-${without}`, "got"), "milk 1");
}

Deno.test("stateful sessions of a site that is removed go on where their logs are (f = 1)", async (t) => {
  const topology = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  // They leave memory, and their logs become checkpoints, before that.
  const env = { SOJOURN_LIMITS_STATEFULIDLEMS: "600000" };
  await using cluster = await startCluster({ topology, apps: [APP], env });
  await t.step("of one that was killed", async () => {
    const ids = await begun(cluster, "edge-1");
    await cluster.control("kill", "edge-1");
    await cli(cluster, "sites", "remove", "edge-1");
    await goOn(cluster, ids, "edge-1");
  });
  await t.step("of one that was drained, and rested there", async () => {
    const ids = await begun(cluster, "edge-2");
    await cluster.control("restart", "edge-2"); // nothing is in memory from now on
    await cluster.ready("edge-2");
    await cli(cluster, "sites", "drain", "edge-2");
    await eventually("its process has ended", async () => {
      const { down } = JSON.parse((await ask(`${cluster.url("edge-4")}/_sojourn/admin/chaos`)).text);
      return down.includes("edge-2");
    });
    await eventually("nobody counts on its disk, and it is removed", async () => {
      await cli(cluster, "sites", "remove", "edge-2");
      return true;
    });
    await goOn(cluster, ids, "edge-2");
  });
  await Deno.remove(topology);
});
