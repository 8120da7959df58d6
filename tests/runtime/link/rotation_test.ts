/** The cluster's secret is changed, one site after another: no two that have a secret in common are cut off. */
import { strict as assert } from "node:assert";
import { MemoryTransport } from "../../../runtime/link/memory_transport.ts";
import { type LinkSite, SECRET, type SiteOptions, until, withSites } from "./sites.ts";

const OLD = SECRET, NEW = new Uint8Array(32).fill(5);
const FILES: Readonly<Record<string, SiteOptions["secrets"] & object>> = {
  old: [OLD],
  "old, new": [OLD, NEW],
  "new, old": [NEW, OLD],
  new: [NEW],
};

for (const [above, upper] of Object.entries(FILES)) {
  for (const [below, lower] of Object.entries(FILES)) {
    const common = upper.some((one) => lower.includes(one));
    const says = `a site with ${below} ${
      common ? "reaches" : "does not reach"
    } its parent with ${above} (HK4)`;
    Deno.test(says, () =>
      withSites(new MemoryTransport(), async (start) => {
        const core = start({ site: "core", secrets: upper });
        const edge = start({ site: "edge", secrets: lower, parent: core });
        if (common) {
          await Promise.all([edge.connected("core"), core.connected("edge")]);
          return;
        }
        const refused = (of: LinkSite) => of.log.filter(({ event }) => event === "link.dial_failed").length;
        await until("it has tried several times", () => refused(edge) > 0 && core.hub.status().refused > 4);
        assert.equal(core.isConnected("edge"), false);
      }));
  }
}

Deno.test("a link that is made again is made with the secret that was right before", () =>
  withSites(new MemoryTransport(), async (start) => {
    const core = start({ site: "core", secrets: FILES["new, old"] ?? [NEW] });
    const edge = start({ site: "edge", secrets: [OLD], parent: core });
    await core.connected("edge");
    const before = core.hub.status().refused;
    await edge.hub.close();
    await until("it is gone", () => !core.isConnected("edge"));
    start({ site: "edge", secrets: [OLD], parent: core });
    await core.connected("edge");
    assert.equal(core.hub.status().refused, before, "no attempt was in vain");
  }));
