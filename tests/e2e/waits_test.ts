/** Stateful sessions at two sites that wait for each other, on real processes. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { ask } from "./client.ts";
import { startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "counter");
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "edge-1", parent: "cloud", link: { rttMs: 10, mbps: 1_000 } },
    { id: "edge-2", parent: "cloud", link: { rttMs: 10, mbps: 1_000 } },
  ],
};

async function call(cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) {
  const path = `${cluster.url(site)}/counter/${id}/call/${method}`;
  const { status, text } = await ask(path, { method: "POST", body: JSON.stringify(args) });
  const { result, code } = JSON.parse(text) as { result?: unknown; code?: string };
  return { status, result, code };
}

Deno.test("sessions at two sites that call each other at once: one fails, the other goes on", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-waits-" });
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({ topology, apps: [APP] });
  await Deno.remove(folder, { recursive: true });
  const at = [["edge-1", "x"], ["edge-2", "y"]] as const;
  for (const [site, id] of at) assert.equal((await call(cluster, site, id, "add", 0)).status, 200);

  await t.step("a circle fails within a second, and its call is never begun", async () => {
    const beganMs = performance.now();
    const told = await Promise.all([
      call(cluster, "edge-1", "x", "meet", "y"),
      call(cluster, "edge-2", "y", "meet", "x"),
    ]);
    const tookMs = performance.now() - beganMs;
    assert.deepEqual(told.map(({ code }) => code ?? "").sort(), ["", "cycle"], JSON.stringify(told));
    assert.ok(tookMs < 5_000, `it took ${tookMs} ms`);
    // Who failed has done nothing, and was added 10 by the other; that one has only its own.
    const counts = await Promise.all(
      at.map(async ([site, id]) => (await call(cluster, site, id, "get")).result),
    );
    assert.deepEqual(counts, told[0].code === "cycle" ? [10, 1] : [1, 10]);
  });

  await t.step("a call whose caller has failed is not begun", async () => {
    for (const [site, id] of [["edge-1", "v"], ["edge-2", "w"]] as const) {
      await call(cluster, site, id, "add", 0);
    }
    // w runs a handler of two seconds and a half; v asks it meanwhile, and fails.
    const busy = call(cluster, "edge-2", "w", "dawdle", 2_500);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const beganMs = performance.now();
    assert.equal((await call(cluster, "edge-1", "v", "forsake", "w")).code, "app_error");
    assert.ok(performance.now() - beganMs < 1_000, "it failed while the other was busy");
    assert.equal((await busy).status, 200);
    assert.equal((await call(cluster, "edge-2", "w", "get")).result, 0);
  });
});
