/** The cart example, walked as its README tells it. */
import { join } from "node:path";
import { walkCart } from "./cart_walk.ts";
import { startCluster } from "./cluster.ts";

const link = (rttMs: number) => ({ rttMs, mbps: 1_000 });
const edge = (id: string, ...sites: readonly string[]) => ({
  ...{ id, parent: "core-1", link: link(2), f: 1, owners: { sites } },
});
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core-1", parent: "cloud", link: link(10) },
    edge("edge-1", "edge-2", "edge-3"),
    edge("edge-2", "edge-1", "edge-3"),
    edge("edge-3", "edge-1", "edge-2"),
  ],
};

Deno.test("customers lose nothing and get nothing twice when the home of their carts is killed", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-cart-" });
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({
    topology,
    apps: ["cart"],
    env: { SOJOURN_OWNERS_DEADMS: "3000", SOJOURN_OWNERS_SUSPECTMS: "1000" },
  });
  await Deno.remove(folder, { recursive: true });
  await walkCart(cluster);
});
