import assert from "node:assert/strict";
import { ParkedTable } from "../../../runtime/stateful/parked_table.ts";
import { asSystem, MemorySystem } from "../deploy/memory_system.ts";

const report = {
  ...{ code: "diverged", message: "m".repeat(5_000), version: "v1", site: "edge-1", atMs: 1 },
  detail: { logged: "entry" },
};
const named = (id: string) => ({ app: "shop", class: "card", id });

Deno.test("reports of the first thousand say all, those after them little, when a deploy parks every session (PT3)", async () => {
  const table = new ParkedTable(asSystem(new MemorySystem()), () => assert.fail());
  await table.follow();
  await Promise.all(Array.from({ length: 1_001 }, (_, i) => table.park(named(`s${i}`), report)));
  const first = table.get(named("s0")), last = table.get(named("s1000"));
  assert.deepEqual([first?.detail, first?.message.length], [{ logged: "entry" }, 2_000]);
  assert.deepEqual([last?.detail, last?.message.length], [{ isCut: true }, 200]);
  await table.drop(named("s0"));
  await table.drop(named("s1"));
  await table.park(named("s1001"), report);
  assert.deepEqual(table.get(named("s1001"))?.detail, { logged: "entry" });
  table.close();
});

Deno.test("what is parked and dropped counts before its row is written, and where it can't be (PT1)", async () => {
  const system = new MemorySystem(), notes: string[] = [];
  const table = new ParkedTable(asSystem(system), (event) => void notes.push(event));
  await table.follow();
  const told: string[] = [];
  table.onDrop(({ id }) => void told.push(id));
  const standing = () => [...table.all()].map(({ name }) => name.id);
  const parking = table.park(named("a"), report);
  assert.deepEqual([table.get(named("a"))?.code, standing()], ["diverged", ["a"]]);
  await parking;
  const dropping = table.drop(named("a"));
  assert.deepEqual([table.get(named("a")), standing(), told], [null, [], ["a"]]);
  await dropping;
  system.failAfterWrites = 0;
  await table.park(named("b"), report);
  assert.deepEqual([standing(), notes], [["b"], ["parked_unwritten"]]);
  table.close();
});
