/** Replica numbers at their end (store/numbers.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { Core } from "../../store/core.ts";
import { Numbers } from "../../store/numbers.ts";
import { REPLICA_NUMBER_MAX } from "../../store/row.ts";

Deno.test("numbers: the last one is given, and then none, which the log says", async () => {
  const notes: unknown[] = [];
  const core = new Core({
    site: "root",
    parent: null,
    tier: "root",
    url: "",
    linkAddress: "",
    capacityBytes: 1e9,
  }, {
    clock: { nowMs: () => 0, after: () => () => {}, turn: () => Promise.resolve() },
    random: { bytes: (length) => new Uint8Array(length) },
    storage: new MemoryStorage(),
    network: { send: () => Promise.resolve() },
    fatal: (error) => {
      throw error;
    },
    note: (event, detail) => notes.push([event, detail]),
  });
  const numbers = new Numbers(core, { above: null, durable: () => Promise.resolve() });
  numbers.restore(REPLICA_NUMBER_MAX);
  const claim = (site: string) => ({ site, path: ["root", site], parent: 1, from: 0 });
  assert.equal(await numbers.give(claim("a")), REPLICA_NUMBER_MAX);
  assert.deepEqual(notes, []);
  let given = false;
  void numbers.give(claim("b")).then(() => given = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(given, false);
  assert.deepEqual(notes, [["numbers_exhausted", { child: "b", most: REPLICA_NUMBER_MAX }]]);
});
