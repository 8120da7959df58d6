/** What seeds draw (topology.ts), where one part of a plan has to leave room for another. */
import { ok } from "node:assert/strict";
import { drawPlan } from "./topology.ts";

Deno.test("seeds take no more sites off the tree than leave every site its owners, and no more disks with them", () => {
  let adopting = 0;
  for (let seed = 0; seed < 20_000; seed++) {
    const { sites, faults } = drawPlan(seed);
    const f = Math.max(0, ...sites.map(({ owners }) => owners.f));
    if (f === 0) continue;
    const gone = Math.ceil(faults.remove) + faults.retire + faults.adopt;
    ok(sites.length - gone > f, `seed ${seed}: ${gone} of ${sites.length} sites go, and f is ${f}`);
    if (faults.adopt === 0) continue;
    adopting++;
    const lost = gone + Math.ceil(faults.wipe);
    ok(lost <= f, `seed ${seed}: ${lost} disks go, and f is ${f}`);
  }
  ok(adopting > 10);
});
