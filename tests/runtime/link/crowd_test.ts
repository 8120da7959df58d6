/** A crowd at the door: all children of a parent that restarted come at once. */
import { strict as assert } from "node:assert";
import { MemoryTransport } from "../../../runtime/link/mod.ts";
import { until, withSites } from "./sites.ts";

Deno.test("link: children that together are far more than the door takes at once all get in", () =>
  withSites(new MemoryTransport(), async (start) => {
    // Handshakes over a slow link, and children that dial again before the next one could have ended: were it
    // always the oldest who is shown out, it would be the one nearest to its end, every time.
    const limits = { strangersMax: 16, retryMsMin: 50, retryMsMax: 100 };
    const emulate = () => ({ rttMs: 80, mbps: 1000, jitterMs: 0, loss: 0 });
    const core = start({ site: "core", limits, emulate });
    const children = Array.from(
      { length: 40 },
      (_, i) => start({ site: `edge-${i}`, parent: core, limits, emulate }),
    );
    await until("all are in", () => children.every((child) => child.isConnected("core")));
    assert.ok(core.hub.status().refused > 0, "nobody was shown out: this was no crowd");
  }));
