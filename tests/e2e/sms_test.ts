/** The SMS gateway of examples/sms, over four sites of which two are killed. */
import { join } from "node:path";
import { startCluster } from "./cluster.ts";
import { walkSms, walkSmsPage } from "./sms_walk.ts";

const edge = (id: string, ...sites: readonly string[]) => ({
  ...{ id, parent: "cloud", link: { rttMs: 10, mbps: 1_000 }, f: 1, owners: { sites } },
});
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    edge("east", "west", "north"),
    edge("west", "north", "east"),
    edge("north", "east", "west"),
  ],
};

Deno.test("a gateway for text messages loses none with a site, and delivers each once", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-sms-" });
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({ topology, apps: ["sms"] });
  await Deno.remove(folder, { recursive: true });
  await t.step("what was acknowledged is delivered, or a dead letter", () => walkSms(cluster));
  await t.step("its page goes on at another site", () => walkSmsPage(cluster));
});
