/** The cart example, walked as its README tells it, and others whose stateful sessions outlive their site. */
import { join } from "node:path";
import { walkCart } from "./cart_walk.ts";
import { startCluster } from "./cluster.ts";
import { GAMES } from "../soak/games.ts";
import { walkGamePages } from "./games_pages.ts";
import { walkGames } from "./games_walk.ts";
import { walkMotion } from "./motion_walk.ts";

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

Deno.test("the examples with stateful sessions keep their promises when the home is killed", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-cart-" });
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({
    topology,
    apps: ["cart", "motion", ...GAMES],
    env: { SOJOURN_OWNERS_DEADMS: "3000", SOJOURN_OWNERS_SUSPECTMS: "1000" },
  });
  await Deno.remove(folder, { recursive: true });
  await t.step("cart: customers lose nothing and get nothing twice", () => walkCart(cluster));
  await t.step("pong and scrabble: two players at two edges see one game", () => walkGames(cluster));
  await t.step("pong and scrabble: pages go on when their site is killed", () => walkGamePages(cluster));
  await t.step("motion: a camera goes on with its background", () => walkMotion(cluster));
});
