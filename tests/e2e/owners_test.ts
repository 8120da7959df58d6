/** Sites with owners: what they told outlives them. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { runCli } from "../../runtime/cli/mod.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const link = (rttMs: number) => ({ rttMs, mbps: 1_000 });
/** Two regions; what edge-1 tells, edge-3 has as well, and the other way round. */
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core-1", parent: "cloud", link: link(20) },
    { id: "core-2", parent: "cloud", link: link(20) },
    { id: "edge-1", parent: "core-1", link: link(2), f: 1, owners: { sites: ["edge-3"] } },
    { id: "edge-2", parent: "core-1", link: link(2), f: 1, owners: { sites: ["edge-1", "edge-3"] } },
    { id: "edge-3", parent: "core-2", link: link(2), f: 1, owners: { sites: ["edge-1", "edge-2"] } },
  ],
};
/**
 * The target is a second, which benchmarks look at; on a busy machine an owner may be asked in vain first, and the client is
 * told so (503). Without owners nobody would have what was written, however long one waited.
 */
const FAILOVER_MS_MAX = 20_000;

const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;

async function put(cluster: TestCluster, client: HeaderClient, site: string, id: string): Promise<void> {
  const answer = await client.fetch(note(cluster, site, id), { method: "PUT", body: id });
  assert.equal(answer.status, 201, `${site} ${id}: ${answer.text}`);
}

async function chaos(cluster: TestCluster, ...args: readonly string[]): Promise<void> {
  const said: string[] = [];
  const shell = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
  const code = await runCli(["chaos", ...args, "--data", cluster.data], { ...shell, env: () => undefined });
  assert.equal(code, 0, `chaos ${args.join(" ")}: ${said.join("\n")}`);
}

async function status(cluster: TestCluster, site: string) {
  return JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text) as {
    incarnation: number;
    wards: { owners: string[]; silent: unknown[] };
    alerts: { code: string }[];
  };
}

async function owned(cluster: TestCluster, site: string): Promise<void> {
  await eventually(
    `the owners of ${site} are in effect`,
    async () => (await status(cluster, site)).wards.owners.length === 1,
  );
}

async function goesOnElsewhere(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await put(cluster, client, "edge-1", "before");
  await chaos(cluster, "partition", "edge-1", "core-1");
  for (let i = 0; i < 5; i++) await put(cluster, client, "edge-1", `cut-off-${i}`);
  await cluster.control("kill", "edge-1");
  const begunMs = performance.now();
  for (const site of ["edge-2", "edge-3"]) {
    const moved = new HeaderClient();
    moved.token = client.token;
    for (;;) {
      const { status, text } = await moved.fetch(note(cluster, site, "cut-off-4"));
      const tookMs = performance.now() - begunMs;
      assert.ok(tookMs < FAILOVER_MS_MAX, `${site} took ${tookMs} ms: ${status} ${text}`);
      if (text === "cut-off-4") break;
      assert.equal(status, 503, `${site} goes on with what was written: ${status} ${text}`);
      assert.match(text, /"source_unreachable"/);
      moved.token = client.token;
    }
    for (let i = 0; i < 4; i++) {
      assert.equal((await moved.fetch(note(cluster, site, `cut-off-${i}`))).text, `cut-off-${i}`);
    }
  }
  await chaos(cluster, "heal");
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  await owned(cluster, "edge-1");
}

async function losesItsDisk(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await cluster.control("kill", "core-1");
  await put(cluster, client, "edge-1", "only-here");
  const before = await status(cluster, "edge-1");
  await cluster.control("kill", "edge-1");
  await Deno.remove(join(cluster.data, "sites", "edge-1", "data"), { recursive: true });
  await cluster.control("start", "core-1");
  await cluster.ready("core-1");
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  assert.notEqual((await status(cluster, "edge-1")).incarnation, before.incarnation);
  for (const site of ["edge-1", "edge-2", "edge-3", "cloud"]) {
    await eventually(`${site} has what the lost disk had told`, async () => {
      const { status, text } = await ask(note(cluster, site, "only-here"), {
        headers: { "sojourn-session": client.token },
      });
      assert.ok(status === 200 || status === 503, `neither lost nor stale: ${status} ${text}`);
      return text === "only-here";
    });
  }
  await owned(cluster, "edge-1");
}

async function waitsForOwners(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await cluster.control("pause", "edge-3");
  const answer = await client.fetch(note(cluster, "edge-1", "unowned"), { method: "PUT", body: "x" });
  assert.equal(answer.status, 503, answer.text);
  assert.match(answer.text, /"code":"owners_unreachable".*"retry":"retry"/);
  await eventually(
    "an alert names the owner",
    async () => (await status(cluster, "edge-1")).alerts.some(({ code }) => code === "owners_silent"),
  );
  await eventually("metrics count it", async () => {
    const { text } = await ask(`${cluster.url("edge-1")}/_sojourn/metrics`);
    return /^sojourn_owners_watched\S*standing="(?:suspected|dead)"\S* 1$/m.test(text);
  });
  await cluster.control("resume", "edge-3");
  await eventually("writes go on", async () => {
    const again = await client.fetch(note(cluster, "edge-1", "unowned"), { method: "PUT", body: "y" });
    return again.status === 201;
  });
}

Deno.test("what a site with owners has told outlives it", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({ topology });
  for (const site of ["edge-1", "edge-2", "edge-3"]) await owned(cluster, site);
  await t.step("a session of a killed site goes on with all it was told", () => goesOnElsewhere(cluster));
  await t.step("a lost disk loses nothing that was told", () => losesItsDisk(cluster));
  await t.step("a site whose owner is silent does not answer, and says why", () => waitsForOwners(cluster));
  await Deno.remove(folder, { recursive: true });
});
