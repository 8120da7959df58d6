/** Replica numbers at their end (store/change/numbers.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import type { Key } from "../../../store/model/key.ts";
import { NUMBER_JUMP_SHARE } from "../../../store/model/limits.ts";
import { Numbers } from "../../../store/change/numbers.ts";
import { REPLICA_NUMBER_MAX } from "../../../store/model/row.ts";
import { encodeJson, replicaKey } from "../../../store/members/topology.ts";

function rootCore(notes: unknown[], byte = 0): Core {
  return new Core({
    site: "root",
    parent: null,
    tier: "root",
    url: "",
    linkAddress: "",
    capacityBytes: 1e9,
  }, {
    clock: { nowMs: () => 0, steadyMs: () => 0, after: () => () => {}, turn: () => Promise.resolve() },
    random: { bytes: (length) => new Uint8Array(length).fill(byte) },
    storage: new MemoryStorage(),
    network: { send: () => Promise.resolve() },
    fatal: (error) => {
      throw error;
    },
    note: (event, detail) => notes.push([event, detail]),
  });
}

Deno.test("numbers: the last one is given, and then none, which the log says (N3)", async () => {
  const notes: unknown[] = [], core = rootCore(notes);
  const numbers = new Numbers(core, null);
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

Deno.test("numbers: none is given to a site that comes with one which was never given (N4)", async () => {
  const notes: unknown[] = [], core = rootCore(notes);
  const numbers = new Numbers(core, null);
  const claim = (from: number) => ({ site: "a", path: ["root", "a"], parent: 1, from });
  assert.equal(await numbers.give(claim(0)), 2);
  assert.equal(await numbers.give(claim(2)), 3);
  let given = false;
  void numbers.give(claim(4)).then(() => given = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(given, false);
  assert.deepEqual(notes, [["number_unknown", { from: "a", number: 4, before: 0 }]]);
});

Deno.test("numbers: the first that a process gives is beyond one that it draws, and others follow one by one (N4)", async () => {
  const core = rootCore([], 0x80), numbers = new Numbers(core, null);
  numbers.restore(40);
  const given: number[] = [];
  for (const site of ["a", "b", "c"]) {
    given.push(await numbers.give({ site, path: ["root", site], parent: 1, from: 0 }));
  }
  const [first = 0] = given;
  assert.ok(first > 1_000 && first < REPLICA_NUMBER_MAX * NUMBER_JUMP_SHARE, `${first}`);
  assert.deepEqual(given, [first, first + 1, first + 2]);
});

Deno.test("an incarnation that names itself, or a later one, as the one before leads nowhere", () => {
  const { rows, topology } = rootCore([]);
  const own = (key: Key, value: unknown) => (
    { key, value: encodeJson(value), clock: 1, replica: 1, known: 0, expiresAtMs: 0 }
  );
  for (const [number, from] of [[5, 5], [6, 7], [7, 6]] as const) {
    rows.put(own(replicaKey(number), { site: "a", path: ["root", "a"], parent: 1, from }));
  }
  assert.equal(topology.isOneDisk(4, 5), false);
  assert.equal(topology.isOneDisk(4, 6), false);
  assert.equal(topology.isOneDisk(6, 7), true);
  assert.equal(topology.goesOn(5), false);
});
