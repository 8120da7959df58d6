/**
 * Tables of pong and scrabble, in the short form of `deno task soak --games`: the edge where they live is killed in the
 * middle of a rally and with moves on their way, twice.
 */
import { strict as assert } from "node:assert";
import { soakGames } from "../soak/games.ts";
import type { TestCluster } from "./cluster.ts";

/** Plays over a cluster with f = 1 at its edges. */
export async function walkGames(cluster: TestCluster): Promise<void> {
  const played = await soakGames(cluster, {
    ...{
      edges: ["edge-1", "edge-2"],
      tables: 1,
      seed: "walk",
      msMax: 60_000,
      everyMs: 0,
      awayMs: 0,
      killsMax: 2,
    },
    ...{ sockets: "plain", say: () => {} },
  });
  assert.deepEqual(played.findings, []);
  assert.equal(played.kills, 2);
  assert.ok(played.told.pong > 100 && played.told.scrabble > 10, JSON.stringify(played));
}
