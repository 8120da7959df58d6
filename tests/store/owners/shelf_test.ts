/** What lies on a disk of tuples, and what is left there of those that are gone (store/owners/shelf.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { unpackKey } from "../../../store/model/key.ts";
import { WHOLE } from "../../../store/model/range.ts";
import { Shelf } from "../../../store/owners/shelf.ts";
import { Tuple, type TupleState } from "../../../store/owners/tuple.ts";

const LONG = 1_025, SHORT = 1_024;
const STATE: TupleState = {
  ...{ version: 1, owners: ["a", "b"], former: [], f: 1, topic: "mail", rememberUntilS: 0 },
  ...{ isUnsure: false, isRepeated: false, gone: false, dueMs: 0, note: "", bytes: 0 },
};

Deno.test("who had told all before a stop is known to the next process until that one was to be back (O8, X6)", async () => {
  const storage = new MemoryStorage();
  const load = () => new Shelf(storage).load(() => {}, () => Promise.resolve());
  assert.deepEqual(await load(), { awayUntilMs: null, toldUntilMs: new Map() });
  const shelf = new Shelf(storage);
  shelf.told("b", 50, 10);
  shelf.told("c", 90, 10);
  shelf.away(70);
  await shelf.commit();
  const told = new Map([["b", 50], ["c", 90]]);
  assert.deepEqual(await load(), { awayUntilMs: 70, toldUntilMs: told });
  const next = new Shelf(storage);
  await next.load(() => {}, () => Promise.resolve());
  next.told("d", 99, 50);
  await next.commit();
  assert.deepEqual((await load()).toldUntilMs, new Map([["c", 90], ["d", 99]]));
});

for (const bytes of [SHORT, LONG]) {
  Deno.test(`of a tuple of ${bytes} bytes nothing stays that it has no more: a change, a payload (H2)`, async () => {
    const storage = new MemoryStorage(), shelf = new Shelf(storage);
    const keys = async () => {
      await shelf.commit();
      const rows = await storage.scan(WHOLE, { limit: 10 });
      return rows.map(({ key }) => unpackKey(key)[0]).sort();
    };
    const payload = bytes === LONG ? ["p"] : [];
    const tuple = new Tuple("x", 0 as never, { ...STATE, bytes });
    shelf.put(tuple, new Uint8Array(bytes));
    assert.deepEqual(await keys(), [...payload, "t"]);
    shelf.amend(tuple);
    assert.deepEqual(await keys(), ["m", ...payload, "t"]);
    shelf.put(tuple, new Uint8Array(bytes));
    assert.deepEqual(await keys(), [...payload, "t"], "it was written anew");
    shelf.amend(tuple);
    await keys();
    shelf.end(tuple);
    assert.deepEqual(await keys(), ["t"], "its end is remembered");
    shelf.amend(tuple);
    await keys();
    shelf.drop(tuple);
    assert.deepEqual(await keys(), []);
  });
}
