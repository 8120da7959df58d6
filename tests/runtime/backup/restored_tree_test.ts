/** Who joins a restored tree, and who waits (runtime/site/restored_tree.ts). */
import { strict as assert } from "node:assert";
import { RestoredTree } from "../../../runtime/site/restored_tree.ts";
import { asSystem, MemorySystem } from "../deploy/memory_system.ts";

const A = { cut: "a".repeat(32), copy: "1" }, B = { cut: "b".repeat(32), copy: "2" };

/** A site that joins; what it has said, and whether it has. */
function joining(
  rows: MemorySystem,
  site: string,
  restored: { readonly cut: string; readonly copy: string },
) {
  const said: string[] = [];
  const tree = new RestoredTree({
    system: asSystem(rows),
    site,
    isRoot: site === "cloud",
    restored,
    note: (event, fields) => said.push(`${event} ${fields.root ?? ""} ${fields.says}`),
  });
  const state = { said, tree, joined: false, ended: Promise.resolve() };
  state.ended = tree.join().then(() => void (state.joined = true));
  return state;
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

Deno.test("a site that was restored waits for the root of its moment (RJ1)", async () => {
  const rows = new MemorySystem();
  const edge = joining(rows, "edge-1", A);
  await settled();
  assert.equal(edge.joined, false);
  assert.deepEqual(edge.said.length, 1);
  // Another root than that of its copy.
  await joining(rows, "cloud", B).ended;
  await settled();
  assert.equal(edge.joined, false);
  assert.match(edge.said.at(-1) ?? "", new RegExp(`^restored_waits ${B.cut} `));
  await joining(rows, "cloud", A).ended;
  await edge.ended;
  assert.equal(edge.joined, true);
});

Deno.test("a second copy of one moment does not join in the place of one that has (RJ2)", async () => {
  const rows = new MemorySystem();
  await joining(rows, "cloud", A).ended;
  await joining(rows, "edge-1", A).ended;
  await joining(rows, "edge-2", { ...A, copy: "7" }).ended;
  const again = joining(rows, "edge-1", { ...A, copy: "3" });
  await settled();
  assert.equal(again.joined, false);
  assert.match(again.said.at(-1) ?? "", /another copy of this moment has joined before/);
  again.tree.close();
  await again.ended;
  // The one that has joined may say so again: it ended before it had written that down.
  await joining(rows, "edge-1", A).ended;
});
