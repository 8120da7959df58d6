/** What becomes of a tuple at one owner, by itself: who is told of what, and what is left of it (store/owners/custody.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { GONE_MS } from "../../../store/model/limits.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { Custody } from "../../../store/owners/custody.ts";
import type { TupleExchange } from "../../../store/owners/exchange.ts";
import { mended } from "../../../store/owners/mend.ts";
import type { Entry } from "../../../store/owners/packet.ts";
import { Shelf } from "../../../store/owners/shelf.ts";
import { Tuple } from "../../../store/owners/tuple.ts";
import type { Standing } from "../../../store/presence/detector.ts";

/** Site a; what its user, its producer and the other owners are told, in order. */
function keeping(f = 1) {
  const storage = new MemoryStorage(), shelf = new Shelf(storage);
  const told: string[] = [];
  const state = { nowMs: 0, standings: new Map<SiteId, Standing>(), spare: [] as SiteId[] };
  const exchange = {
    ...{ share: () => {}, unshare: () => {}, lost: () => {}, isFull: () => false, isSettled: () => true },
    ...{ shared: () => custody.tuples.keys(), sites: () => [] },
    tell: (site: SiteId, id: string) => void told.push(`${site} of ${id}`),
    tellForget: (id: string, sites: readonly SiteId[]) => void told.push(`${sites} may forget ${id}`),
    ask: (site: SiteId) => void told.push(`${site} is asked`),
  };
  const custody = new Custody({
    ...{ site: "a", nowMs: () => state.nowMs, shelf, f: () => f, mayChange: undefined },
    choose: (kept) => {
      const owners = ["a", ...kept, ...state.spare].slice(0, f + 1);
      return { owners, missing: f + 1 - owners.length };
    },
    ...{ isKnown: () => true, isStranger: () => false, hasRoom: () => true, count: () => {}, wake: () => {} },
    standing: (site) => state.standings.get(site) ?? "alive",
    refused: (event) => assert.fail(event),
    fail: (error) => assert.fail(`${error}`),
    held: ({ id }) => void told.push(`${id} is held`),
    overtaken: (id) => void told.push(`${id} was overtaken`),
    mine: ({ id, how }) => void told.push(`${id} is mine, ${how}`),
    lost: (id) => void told.push(`${id} is lost`),
  }, exchange as unknown as TupleExchange);
  const written = async () => {
    for (const id of await shelf.commit()) custody.written(id);
  };
  /** One that all its owners have. */
  const having = async (owners: readonly SiteId[], version = 1): Promise<Tuple> => {
    const tuple = new Tuple("x", { version, owners, former: [], gone: false }, true);
    custody.loaded(tuple);
    for (const site of owners) custody.acked(tuple, site);
    custody.consider(tuple);
    await written();
    told.length = 0;
    return tuple;
  };
  const onDisk = async () => {
    const [tuple] = await new Shelf(storage).load();
    return tuple === undefined ? null : { owners: tuple.owners, gone: tuple.gone, version: tuple.version };
  };
  return { custody, state, told, written, having, onDisk };
}

const entryOf = (owners: readonly SiteId[], version: number, gone = false): Entry => ({
  ...{ id: "x", version, owners, gone, payload: null },
});

Deno.test("the producer hears that a tuple is stored when all have it, before its user has it; its payload leaves memory then (O1)", async () => {
  const { custody, told, written } = keeping();
  const tuple = new Tuple("x", { version: 1, owners: ["a", "b"], former: [], gone: false }, false);
  tuple.how = "stored";
  custody.take(tuple, new Uint8Array(3));
  assert.deepEqual(told.splice(0), ["b of x"]);
  custody.acked(tuple, "b");
  assert.deepEqual(told, [], "this site's disk has it not");
  await written();
  assert.deepEqual(told.splice(0), ["x is held", "x is mine, stored"]);
  assert.equal(tuple.payload, null);
  const other = new Tuple("y", { version: 1, owners: ["a", "b"], former: [], gone: false }, false);
  custody.take(other, new Uint8Array(3));
  await written();
  assert.deepEqual(told.splice(0), ["b of y"]);
  assert.notEqual(other.payload, null);
  custody.acked(other, "b");
  assert.deepEqual(told, ["y is held", "y is mine, loaded"]);
  assert.equal(other.payload, null);
});

Deno.test("who acts on a tuple is told when another site does so too, and lets it go (O3)", async () => {
  for (const isActing of [true, false]) {
    const all = keeping(2), tuple = await all.having(isActing ? ["a", "b"] : ["b", "a"]);
    assert.equal(tuple.acting, isActing);
    assert.equal(all.custody.merge(entryOf(["c", "a", "b"], 2), "c"), "taken");
    assert.equal(all.told.includes("x is lost"), isActing);
    assert.equal(tuple.acting, false);
    assert.deepEqual(tuple.owners, ["c", "a", "b"]);
    assert.equal(all.custody.merge(entryOf(["b", "a"], 1), "b"), "older");
  }
});

Deno.test("whoever removes a tuple is responsible for its end, is on disk with it, and tells all who had it (O4)", async () => {
  for (const owners of [["a", "b", "c"], ["b", "a", "c"]]) {
    const { custody, told, having, written, onDisk } = keeping(2), tuple = await having(owners);
    custody.end(tuple);
    await written();
    assert.deepEqual(await onDisk(), { owners: ["a", "b", "c"], gone: true, version: 2 });
    assert.deepEqual(told.splice(0), ["b of x", "c of x"]);
    custody.acked(tuple, "b");
    assert.deepEqual(told, [], "c may still have it");
    custody.acked(tuple, "c");
    assert.deepEqual(told, ["b,c may forget x"]);
    await written();
    assert.equal(await onDisk(), null);
  }
  const alone = keeping(0), tuple = await alone.having(["a"]);
  alone.custody.end(tuple);
  await alone.written();
  assert.deepEqual([alone.told, await alone.onDisk()], [[], null], "nobody else has it");
});

Deno.test("an end that another site tells of is remembered while others may have the tuple, and told to them in the end (O4)", async () => {
  const rows:
    readonly (readonly [string, readonly SiteId[], readonly SiteId[], readonly string[], boolean])[] = [
      ["nobody else has it", ["b", "a"], ["b", "a"], [], false],
      ["others have it, whom the other site tells", ["b", "a", "c"], ["b", "a", "c"], [], true],
      ["this site had told another of it", ["a", "c"], ["b", "a"], ["b of x", "c of x"], true],
    ];
  for (const [says, owners, told, expected, isKept] of rows) {
    const all = keeping(2), tuple = await all.having(owners);
    all.custody.merge(entryOf(told, 2, true), "b");
    await all.written();
    assert.deepEqual(all.told.filter((each) => !each.endsWith("lost")).toSorted(), expected, says);
    assert.equal((await all.onDisk())?.gone ?? false, isKept, says);
    if (expected.length > 0 || !isKept) continue;
    all.told.length = 0;
    all.state.nowMs = GONE_MS - 1;
    all.custody.tick();
    assert.deepEqual(all.told, [], "it is waited for");
    all.state.nowMs = GONE_MS;
    all.custody.tick();
    assert.deepEqual(all.told.toSorted(), ["b of x", "c of x"], says);
    all.custody.forget("x");
    assert.equal(all.custody.tuples.has("x"), true, "not all have said that they know");
    for (const site of ["b", "c"]) all.custody.acked(tuple, site);
    assert.equal(all.custody.tuples.has("x"), false);
  }
});

Deno.test("the next owner adopts a tuple when all before it are lost, and gives those that are dead a successor (O5)", async () => {
  const all = keeping(2), tuple = await all.having(["b", "a", "c"]);
  all.state.spare = ["d"];
  all.custody.consider(tuple);
  assert.deepEqual(all.told, [], "its owner lives");
  all.state.standings.set("b", "dead");
  all.custody.changed("b", "dead");
  all.custody.considerSome();
  assert.deepEqual([tuple.owners, tuple.former], [["a", "c", "d"], ["b"]]);
  assert.equal(tuple.how, "adopted");
  assert.ok(tuple.version > 1);
  await all.written();
  assert.match(String(all.told), /x is mine, adopted/);
  const suspected = keeping(2), other = await suspected.having(["b", "a", "c"]);
  suspected.state.spare = ["d"];
  suspected.state.standings.set("b", "suspected");
  suspected.custody.consider(other);
  assert.deepEqual(other.owners, ["a", "c", "b"], "it may be back: it is the last");
});

Deno.test("an owner that is of no use stays where nobody can take its place (M1)", () => {
  const tuple = new Tuple(
    "x",
    { version: 1, owners: ["a", "b", "c"], former: ["f", "d"], gone: false },
    true,
  );
  const mend = (useless: readonly SiteId[], spare: readonly SiteId[], f = 2) =>
    mended(tuple, {
      ...{ site: "a", f, isUseless: (site) => useless.includes(site) },
      choose: (kept) => {
        const owners = ["a", ...kept, ...spare].slice(0, f + 1);
        return { owners, missing: f + 1 - owners.length };
      },
    });
  const fine = { owners: ["a", "b", "c"], former: ["f", "d"], leaves: [], missing: 0, isChanged: false };
  assert.deepEqual(mend([], ["d"]), fine);
  assert.deepEqual(mend(["b"], ["d", "e"]), {
    ...{ owners: ["a", "c", "d"], former: ["f", "b"], leaves: ["b"], missing: 0, isChanged: true },
  });
  assert.deepEqual(mend(["b", "c"], ["d"]), {
    ...{ owners: ["a", "d", "b"], former: ["f", "c"], leaves: ["c"], missing: 1, isChanged: true },
  });
  assert.deepEqual(mend(["b"], []), {
    ...{ owners: ["a", "c", "b"], former: ["f", "d"], leaves: [], missing: 1, isChanged: false },
  });
  assert.deepEqual(mend([], ["d", "e"], 3), {
    ...{ owners: ["a", "b", "c", "d"], former: ["f"], leaves: [], missing: 0, isChanged: true },
  });
});
