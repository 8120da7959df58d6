/** Whom sites measure in a large cluster (store/presence/candidates.ts). */
import { strict as assert } from "node:assert";
import { CANDIDATES_MAX } from "../../../store/model/limits.ts";
import { worthMeasuring } from "../../../store/presence/candidates.ts";

const CORES = 20, EDGES = 2_000;

function tree(): Map<string, { parent: string | null }> {
  const sites = new Map<string, { parent: string | null }>([["root", { parent: null }]]);
  for (let i = 0; i < CORES; i++) sites.set(`core-${i}`, { parent: "root" });
  for (let i = 0; i < EDGES; i++) sites.set(`edge-${i}`, { parent: `core-${i % CORES}` });
  return sites;
}

const ofEdge = (i: number, sites: ReturnType<typeof tree>) =>
  worthMeasuring(sites.keys(), { site: `edge-${i}`, path: ["root", `core-${i % CORES}`], sites });

Deno.test("candidates: of few sites all are measured, of many so many, near and far", () => {
  const few = new Map([...tree()].slice(0, 10));
  assert.deepEqual(ofEdge(0, few).sort(), [...few.keys()].sort());
  const chosen = ofEdge(0, tree());
  assert.equal(new Set(chosen).size, CANDIDATES_MAX);
  assert.ok(!chosen.includes("edge-0"));
  assert.equal(chosen[0], "core-0");
  const near = chosen.filter((id) => tree().get(id)?.parent === "core-0");
  assert.ok(near.length >= 10 && near.length <= 20, `${near.length} siblings`);
});

Deno.test("candidates: no site is measured by all the others but those above them (C1)", () => {
  const sites = tree(), watchers = new Map<string, number>();
  for (let i = 0; i < EDGES; i++) {
    for (const id of ofEdge(i, sites)) watchers.set(id, (watchers.get(id) ?? 0) + 1);
  }
  const edges = [...watchers].filter(([id]) => id.startsWith("edge-")).map(([, count]) => count);
  assert.ok(Math.max(...edges) < 4 * CANDIDATES_MAX, `${Math.max(...edges)} sites measure one`);
  assert.equal(edges.length, EDGES);
  assert.ok((watchers.get("root") ?? 0) < EDGES / 2);
});

Deno.test("candidates: one more site changes no more than two of a site's (C2)", () => {
  const before = tree(), after = tree();
  after.set("edge-x", { parent: "core-3" });
  for (let i = 0; i < EDGES; i += 7) {
    const was = new Set(ofEdge(i, before));
    const isNew = ofEdge(i, after).filter((id) => !was.has(id));
    assert.ok(isNew.length <= 2, `${isNew.length} are new at edge-${i}`);
  }
});
