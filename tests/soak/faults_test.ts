import { strict as assert } from "node:assert";
import { Random } from "../examples/board/random.ts";
import { drawFault } from "./faults.ts";

const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];
const draws = (seed: number, count: number) => {
  const random = new Random(seed);
  return Array.from({ length: count }, () => drawFault(SITES, random));
};

Deno.test("drawFault draws every kind in some hundred rounds, any site among them, and takes no disk", () => {
  const faults = draws(1, 400);
  const kinds = new Set(faults.map(({ kind }) => kind));
  const wanted = ["kill", "kill 2", "kill all", "restart", "pause", "pause 2", "partition one"];
  for (const kind of [...wanted, "partition pair", "partition group", "partition + kill"]) {
    assert.ok(kinds.has(kind), `${kind} is not among ${[...kinds]}`);
  }
  const killed = faults.flatMap(({ begin }) => begin.flatMap((a) => a.action === "kill" ? [a.site] : []));
  assert.deepEqual(new Set(killed), new Set(SITES));
  assert.ok(faults.every(({ begin }) => begin.every(({ action }) => action !== "wipe" && action !== "disk")));
});

Deno.test("drawFault undoes what it does", () => {
  for (const { kind, begin, end } of draws(2, 400)) {
    const left = new Set<string>();
    for (const each of [...begin, ...end]) {
      if (each.action === "kill" || each.action === "pause") left.add(each.site);
      if (each.action === "restart" || each.action === "resume") left.delete(each.site);
      if (each.action === "partition") left.add("a cut");
      if (each.action === "heal") left.delete("a cut");
    }
    assert.deepEqual([...left], [], kind);
  }
});

Deno.test("drawFault repeats itself for a seed", () => assert.deepEqual(draws(3, 50), draws(3, 50)));
