import { ok, strictEqual } from "node:assert/strict";
import { type Deployment, DEPLOYMENTS, ownerOf, Ring } from "./ring.ts";
import { rowOf } from "./one_row.ts";
import { roundTripMs, SITES } from "./topology.ts";
import { inVirtualTime } from "./virtual_run.ts";

for (const deployment of DEPLOYMENTS) {
  Deno.test(`${deployment}: every site reads the newest acknowledged write`, async () => {
    await inVirtualTime(async (around) => {
      const ring = new Ring(deployment, around);
      for (let n = 0; n < 30; n++) {
        const { key } = rowOf("ring", n % 5), value = new Uint8Array([n]);
        await ring.write(SITES[n % SITES.length] ?? "", { key, value });
        for (const site of SITES) {
          strictEqual((await ring.read(site, key))?.value?.[0], n, `write ${n}, read at ${site}`);
        }
      }
    });
  });
}

/** Milliseconds of links, to whole ones: bytes and syncs take fractions. */
async function took(deployment: Deployment, operation: "read" | "write", n = 0): Promise<number> {
  return await inVirtualTime(async (around) => {
    const ring = new Ring(deployment, around), row = rowOf("ring", n);
    await ring.write("edge-1", row);
    await around.world.sleep(1_000);
    const begunMs = around.world.nowMs;
    if (operation === "read") await ring.read("edge-1", row.key);
    else await ring.write("edge-1", row);
    return Math.floor(around.world.nowMs - begunMs);
  });
}

Deno.test("each deployment waits for the sites that it names", async () => {
  const expected: [Deployment, "read" | "write", number][] = [
    ["all", "read", 0],
    ["all", "write", 44],
    // The third nearest of the others is the cloud.
    ["quorum", "read", 22],
    ["quorum", "write", 22],
    ["strong", "read", 44],
    ["strong", "write", 110],
  ];
  for (const [deployment, operation, ms] of expected) {
    strictEqual(await took(deployment, operation), ms, `${operation} with ${deployment}`);
  }
  for (let n = 0; n < 6; n++) {
    strictEqual(
      await took("single", "read", n),
      roundTripMs("edge-1", ownerOf(rowOf("ring", n).key)),
      `row ${n}`,
    );
  }
});

Deno.test("rows of single replication are spread over all sites", () => {
  const counts = new Map<string, number>();
  for (let n = 0; n < 600; n++) {
    const owner = ownerOf(rowOf("ring", n).key);
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  for (const site of SITES) ok((counts.get(site) ?? 0) > 60, `${site} has ${counts.get(site)} of 600`);
});
