/** What readers who miss have asked of the parent (store/tree/uplink.ts P4, fetches.ts F3). */
import assert from "node:assert/strict";
import { StoreUnavailable } from "../../../store/api/api.ts";
import { packKey } from "../../../store/model/key.ts";
import { FETCHES_MAX } from "../../../store/model/limits.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { Tree } from "../owners/tree.ts";

async function edge() {
  const tree = new Tree();
  const root = await tree.start("root", null), e1 = await tree.start("e1", null);
  await tree.pass(2_000);
  const count = (name: string) => e1.status().counters[name] ?? 0;
  const reader = await e1.attach(null);
  return { tree, root, reader, count };
}

const keyOf = (i: number) => packKey(["row", i]);

Deno.test("readers who miss one row, or a part of one range, share a fetch (P4)", async () => {
  const { tree, root, reader, count } = await edge();
  const writer = await root.attach(null);
  await writer.write([{ kind: "set", key: keyOf(1), value: Uint8Array.of(7) }]);
  const [fetches, shared] = [count("fetch"), count("fetch_shared")];
  const list = reader.list(prefixRange(packKey(["row"])));
  await tree.pass(1);
  const reads = [
    list,
    ...[1, 1, 2].map((i) => reader.get([keyOf(i)]).then((rows) => rows.flatMap((row) => row ?? []))),
  ];
  await tree.pass(100);
  const found = await Promise.all(reads);
  assert.deepEqual(found.map((rows) => rows.map(({ value }) => value?.[0])), [[7], [7], [7], []]);
  assert.deepEqual([count("fetch") - fetches, count("fetch_shared") - shared], [1, 3]);
});

Deno.test("readers have a bounded number of fetches under way: who comes then is told at once, unless another serves him (F3)", async () => {
  const { tree, reader } = await edge();
  tree.network.partition("root", "e1", Infinity);
  await tree.pass(50);
  const told: string[] = [];
  const read = (name: string, from: number, count: number) =>
    reader.get(Array.from({ length: count }, (_, i) => keyOf(from + i))).then(
      () => told.push(`${name} read`),
      (error) => told.push(`${name} ${error instanceof StoreUnavailable ? error.code : error}`),
    );
  void read("all but one", 0, FETCHES_MAX - 1);
  void read("the last", FETCHES_MAX - 1, 1);
  await tree.pass(10);
  assert.deepEqual(told, []);
  void read("one more", FETCHES_MAX, 1);
  void read("one of them", 5, 1);
  await tree.pass(10);
  assert.deepEqual(told, ["one more store_unreachable"]);
  await tree.pass(60_000);
  assert.equal(told.length, 4, "nobody waits for ever");
});
