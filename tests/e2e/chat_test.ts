/** The chat example, walked as its README tells it. */
import { walkChat } from "./chat_walk.ts";
import { startCluster } from "./cluster.ts";

Deno.test("people who chat at three edges miss nothing when they move and when an edge is killed", async () => {
  await using cluster = await startCluster({ apps: ["chat"] });
  await walkChat(cluster);
});
