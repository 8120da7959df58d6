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
import { type Tuple, type TupleState, versionAt } from "../../../store/owners/tuple.ts";
import { TupleTable } from "../../../store/owners/tuple_table.ts";
import type { Standing } from "../../../store/presence/detector.ts";

const CONTENT = { topic: "mail", f: 1, rememberUntilS: 0 };
const MARK = { dueMs: 5, note: "" };

/** Site a; what its user, its producer and the other owners are told, in order. */
function keeping(f = 1) {
  const storage = new MemoryStorage(), shelf = new Shelf(storage), table = new TupleTable();
  const told: string[] = [];
  const state = {
    nowMs: 0,
    wallMs: 1_000_000,
    standings: new Map<SiteId, Standing>(),
    spare: [] as SiteId[],
    unsettled: new Set<SiteId>(),
    unnamed: new Set<SiteId>(),
    awaited: new Set<SiteId>(),
    hadToldAll: true,
  };
  const exchange = {
    ...{ share: () => {}, unshare: () => {}, lost: () => {}, begins: () => {}, isFull: () => false },
    ...{ isSettled: (site: SiteId) => !state.unsettled.has(site), sites: () => [] },
    isUnnamed: (site: SiteId) => state.unnamed.has(site),
    hadToldAll: () => state.hadToldAll,
    tell: (site: SiteId, id: string) => void told.push(`${site} of ${id}`),
    tellForget: (id: string, sites: readonly SiteId[]) => void told.push(`${sites} may forget ${id}`),
    ask: (site: SiteId) => void told.push(`${site} is asked`),
  };
  const custody = new Custody({
    ...{ site: "a", nowMs: () => state.nowMs, wallMs: () => state.wallMs, shelf, table },
    choose: (wanted, kept) => {
      const owners = ["a", ...kept, ...state.spare].slice(0, wanted + 1);
      return { owners, missing: wanted + 1 - owners.length };
    },
    ...{ isKnown: () => true, isStranger: () => false, hasRoom: () => true },
    ...{ count: () => {}, wake: () => {}, lacking: () => {} },
    awaitedUntilMs: (site) => state.awaited.has(site) ? 9_000_000 : null,
    standing: (site) => state.standings.get(site) ?? "alive",
    refused: (event) => assert.fail(event),
    fail: (error) => assert.fail(`${error}`),
    held: (id) => void told.push(`${id} is held`),
    overtaken: () => {},
    mine: ({ id, how }) => void told.push(`${id} is mine, ${how}`),
    lost: ({ id }) => void told.push(`${id} is lost`),
  }, exchange as unknown as TupleExchange);
  const written = async () => {
    for (const id of await shelf.commit()) custody.written(id);
  };
  const tupleOf = (id: string): Tuple => table.get(id) ?? assert.fail(`there is no ${id}`);
  /** One that the disk had, and all its owners. */
  const having = async (owners: readonly SiteId[], rememberUntilS = 0): Promise<Tuple> => {
    const rest = {
      topic: "mail",
      former: [],
      gone: false,
      isUnsure: false,
      isRepeated: false,
      ...MARK,
      bytes: 3,
      rememberUntilS,
    };
    custody.loaded("x", { version: 1, f, owners, ...rest }, false);
    custody.allLoaded();
    custody.considerSome();
    for (const site of owners) custody.acked(tupleOf("x"), site);
    await written();
    told.length = 0;
    return tupleOf("x");
  };
  const onDisk = async () => {
    let found: Pick<TupleState, "owners" | "gone" | "version"> | null = null;
    const take = (_: string, { owners, gone, version, isRepeated }: TupleState) =>
      found = { owners, gone, version, ...isRepeated ? { isRepeated } : {} };
    await new Shelf(storage).load(take, () => Promise.resolve());
    return found as Pick<TupleState, "owners" | "gone" | "version"> & { readonly isRepeated?: true } | null;
  };
  return { custody, table, state, told, written, having, onDisk, tupleOf };
}

const entryOf = (owners: readonly SiteId[], version: number, gone = false): Entry => ({
  ...{ id: "x", version, owners, mark: gone ? null : MARK, isUnsure: false, goneUntilS: 0, content: null },
});

Deno.test("the producer hears that a tuple is stored when all have it, before its user has it; its payload leaves memory then (O1)", async () => {
  const { custody, told, written, tupleOf } = keeping();
  custody.take("x", ["a", "b"], { ...CONTENT, payload: new Uint8Array(3) }, MARK);
  assert.deepEqual(told.splice(0), ["b of x"]);
  const tuple = tupleOf("x");
  custody.acked(tuple, "b");
  assert.deepEqual(told, [], "this site's disk has it not");
  await written();
  assert.deepEqual(told.splice(0), ["x is held", "x is mine, stored"]);
  assert.equal(tuple.payload, null);
  custody.take("y", ["a", "b"], { ...CONTENT, payload: new Uint8Array(3) }, MARK);
  await written();
  assert.deepEqual(told.splice(0), ["b of y"]);
  const other = tupleOf("y");
  assert.notEqual(other.payload, null);
  custody.acked(other, "b");
  assert.deepEqual(told, ["y is held", "y is mine, stored"]);
  assert.equal(other.payload, null);
});

Deno.test("who acts on a tuple is told when another site does so too, and lets it go (O3)", async () => {
  for (const isActing of [true, false]) {
    const all = keeping(), tuple = await all.having(isActing ? ["a", "b"] : ["b", "a"]);
    assert.equal(tuple.acting, isActing);
    assert.equal(all.custody.merge(entryOf(["c", "a", "b"], 2), "c"), "taken");
    assert.equal(all.told.includes("x is lost"), isActing);
    assert.equal(tuple.acting, false);
    assert.deepEqual(tuple.owners, ["c", "a", "b"]);
    assert.equal(all.custody.merge(entryOf(["b", "a"], 1), "b"), "older");
    assert.equal(all.custody.merge(entryOf(["c", "a", "b"], 2), "b"), "same");
  }
});

Deno.test("who acts hears late of what a lost site had made of a tuple: an older one changes nothing, of a newer one it is the next to act (O3, O5)", async () => {
  const { custody, state, told, having, tupleOf, written } = keeping(1),
    tuple = await having(["a", "b"]);
  state.spare.push("c");
  state.standings.set("b", "dead");
  custody.changed("b", "dead");
  custody.considerSome();
  custody.acked(tuple, "c");
  custody.considerSome();
  await written();
  told.length = 0;
  const now = { version: 3, owners: ["a", "c"] };
  assert.deepEqual([tuple.version, tuple.owners, tuple.acting], [3, ["a", "c"], true], "b is replaced");
  state.standings.set("b", "alive");
  for (
    const [owners, version] of [
      [["a", "b"], 1],
      [["b", "a"], 2],
      [["a", "z"], 2],
      [["b", "c", "a"], 2],
    ] as const
  ) {
    for (const from of ["b", "c"]) {
      assert.equal(custody.merge(entryOf(owners, version), from), "older", `${owners} ${version} of ${from}`);
      assert.deepEqual({ version: tuple.version, owners: tuple.owners }, now);
      assert.equal(tuple.acting, true);
    }
  }
  await written();
  assert.equal(told.length, 0);
  // c has heard what b had made of it, which is dead again.
  state.standings.set("b", "dead");
  assert.equal(custody.merge(entryOf(["b", "a", "c"], 7), "c"), "taken");
  assert.equal(told.splice(0).includes("x is lost"), true);
  custody.considerSome();
  await written();
  assert.equal(told.includes("x is mine, adopted"), true, "nobody else would");
  assert.equal(tupleOf("x").responsible, "a");
  assert.ok(tupleOf("x").version > 7);
});

Deno.test("an owner tells whom another version leaves out, whoever made that, and is told by nobody of it any more then (O3)", async () => {
  for (const by of ["b", "d"]) {
    const { custody, told, having, tupleOf } = keeping(2);
    await having(["b", "a", "c"]);
    custody.merge(entryOf([by, "a", "e"], 2), by);
    const left = by === "b" ? ["c"] : ["b", "c"];
    assert.deepEqual(told.splice(0), left.map((site) => `${site} of x`), by);
    assert.deepEqual(tupleOf("x").former, left);
    for (const site of left) custody.acked(tupleOf("x"), site);
    assert.deepEqual(tupleOf("x").former, []);
  }
  const { custody, told, having } = keeping(2);
  await having(["b", "a", "c"]);
  custody.merge(entryOf(["b", "a", "c"], 2, true), "b");
  assert.deepEqual(told, [], "who removes it tells all");
});

Deno.test("a tuple that waits for the word of one that is left out is adopted when that has come (O2, O5)", async () => {
  const { custody, state, told, having, tupleOf, written } = keeping(2);
  await having(["b", "a", "c"]);
  custody.merge(entryOf(["b", "a", "e"], 2), "b");
  state.unsettled.add("c");
  state.standings.set("b", "suspected");
  custody.changed("b", "suspected");
  custody.considerSome();
  assert.equal(tupleOf("x").responsible, "b", "c may know more");
  custody.acked(tupleOf("x"), "c");
  custody.considerSome();
  await written();
  assert.ok(told.includes("x is mine, adopted"));
});

Deno.test("an owner that does not name a tuple is asked for it by itself: it may have one that names another site here (O2, O5)", async () => {
  for (const owners of [["b", "c", "a"], ["c", "a", "b"]]) {
    for (const hasIt of [true, false]) {
      const { custody, state, told, having, written } = keeping(2), tuple = await having(owners);
      const isNext = owners[0] === "b";
      if (isNext) {
        state.standings.set("b", "suspected");
        custody.changed("b", "suspected");
        custody.considerSome();
        assert.deepEqual(told.splice(0), ["c is asked"]);
      }
      state.unnamed.add("c");
      custody.reconciled("c");
      custody.considerSome();
      await written();
      assert.deepEqual(
        told.splice(0),
        ["c of x"],
        "who tells what it shares with a need not name what it shares with others",
      );
      if (hasIt) custody.acked(tuple, "c");
      else custody.lacks(tuple, "c");
      custody.considerSome();
      await written();
      assert.equal(told.includes("x is mine, adopted"), !hasIt);
      assert.equal(tuple.responsible, hasIt ? owners[0] : "a");
    }
  }
});

Deno.test("what was here before outlives what is stored again under its id, and given up, while that is known (T3)", async () => {
  const again = versionAt(1_000_000), content = { ...CONTENT, f: 2, payload: new Uint8Array(3) };
  const end = { ...entryOf(["c", "a", "b"], again + 1, true), isUnsure: true };
  for (const isStored of [true, false]) {
    const { custody, told, written, onDisk, tupleOf } = keeping(2);
    const first = {
      ...entryOf(["c", "a", "b"], versionAt(990_000)),
      content: { ...content, rememberUntilS: 2_000 },
    };
    custody.merge(first, "c");
    await written();
    const tuple = tupleOf("x");
    if (isStored) {
      assert.equal(custody.merge({ ...entryOf(["c", "a", "b"], again), content }, "c"), "taken");
      await written();
      assert.equal((await onDisk())?.isRepeated, true, "a restart does not change that");
    }
    told.length = 0;
    assert.equal(custody.merge(end, "c"), "older");
    await written();
    assert.deepEqual([tuple.gone, tuple.version], [false, versionAt(1_001_000)]);
    assert.equal((await onDisk())?.version, versionAt(1_001_000));
    assert.deepEqual([...new Set(told.splice(0))], ["c of x", "b of x"]);
    custody.lacks(tuple, "c");
    custody.considerSome();
    await written();
    assert.ok(told.includes("x is mine, adopted"), "who gave it up does not have it");
    assert.equal(custody.merge(end, "b"), "older");
  }
  // Beyond the time for which its id is known it may be over, and what was given up another one.
  const late = keeping(2), old = await late.having(["c", "a", "b"], 1_000);
  assert.equal(late.custody.merge(end, "c"), "taken");
  assert.equal(old.gone, true);
  // What was not here before is what is given up.
  const { custody, written, tupleOf } = keeping(2);
  custody.merge({ ...entryOf(["c", "a", "b"], again), content: { ...content, rememberUntilS: 2_000 } }, "c");
  await written();
  custody.merge(entryOf(["c", "b", "a"], again + 1), "c");
  await written();
  assert.equal(custody.merge({ ...end, version: again + 2 }, "c"), "taken");
  assert.equal(tupleOf("x").gone, true);
});

Deno.test("a tuple that is stored again within a second by a site that lost its disk outlives that too (T3)", async () => {
  const { custody, table, written, tupleOf } = keeping(1), version = versionAt(1_000_000);
  const content = { ...CONTENT, rememberUntilS: 2_000, payload: new Uint8Array(3) };
  const stored = (owners: readonly SiteId[]) => custody.merge({ ...entryOf(owners, version), content }, "c");
  assert.equal(stored(["c", "a", "b"]), "taken");
  assert.equal(stored(["c", "b", "a"]), "taken");
  await written();
  assert.equal(tupleOf("x").isRepeated, true);
  const end = { ...entryOf(["c", "b", "a"], version + 1, true), isUnsure: true };
  assert.equal(custody.merge(end, "c"), "older");
  assert.equal(table.get("x")?.gone, false);
});

Deno.test("what a site that will be back may have adopted as it left waits for it, or for its time to be over (O8)", async () => {
  for (const hadToldAll of [true, false]) {
    const { custody, state, told, having, written } = keeping(2);
    await having(["b", "a", "c"]);
    state.hadToldAll = hadToldAll;
    state.awaited.add("c");
    for (const site of ["c", "b"]) {
      state.standings.set(site, "suspected");
      custody.changed(site, "suspected");
    }
    custody.considerSome();
    await written();
    assert.equal(told.includes("x is mine, adopted"), hadToldAll);
    state.awaited.clear();
    custody.changed("c", "dead");
    custody.considerSome();
    await written();
    assert.ok(told.includes("x is mine, adopted"), "it is not back");
  }
});

Deno.test("what a site had that was down waits for one that may have adopted it and will be back, unless it is back in time (O8)", async () => {
  for (const [hadToldAll, isInTime] of [[false, false], [true, false], [false, true]] as const) {
    const { custody, state, told, having, tupleOf, written } = keeping();
    state.hadToldAll = hadToldAll;
    state.awaited.add("b");
    state.standings.set("b", "suspected");
    if (isInTime) custody.inTime();
    await having(["a", "b"]);
    const isFree = hadToldAll || isInTime;
    assert.equal(tupleOf("x").acting, isFree);
    custody.take("y", ["a", "b"], { ...CONTENT, payload: new Uint8Array(3) }, MARK);
    custody.acked(tupleOf("y"), "b");
    await written();
    assert.ok(told.includes("y is mine, stored"), "what is new nobody has adopted");
    state.awaited.clear();
    custody.changed("b", "dead");
    custody.considerSome();
    assert.equal(told.includes("x is mine, loaded"), !isFree, "it is not back");
  }
});

Deno.test("who is about to say that it stops adopts nothing any more, and goes on with what it has (O8)", async () => {
  for (const isLeaving of [false, true]) {
    const { custody, state, told, having, written } = keeping(2), tuple = await having(["b", "a", "c"]);
    if (isLeaving) custody.leaves();
    state.standings.set("b", "suspected");
    custody.changed("b", "suspected");
    custody.considerSome();
    await written();
    assert.equal(told.includes("x is mine, adopted"), !isLeaving);
    assert.equal(tuple.responsible, isLeaving ? "b" : "a");
  }
  const { custody, state, told, having } = keeping(1), tuple = await having(["a", "b"]);
  custody.leaves();
  state.spare.push("c");
  state.standings.set("b", "dead");
  custody.changed("b", "dead");
  custody.considerSome();
  assert.deepEqual(tuple.owners, ["a", "c", "b"]);
  assert.ok(told.includes("c of x"));
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

Deno.test("an end that another site tells of is kept in mind while others may have the tuple, and told to them in the end (O4)", async () => {
  const rows:
    readonly (readonly [string, readonly SiteId[], readonly SiteId[], readonly string[], boolean])[] = [
      ["nobody else has it", ["b", "a"], ["b", "a"], [], false],
      ["others have it, whom the other site tells", ["b", "a", "c"], ["b", "a", "c"], [], true],
      ["this site had told another of it", ["a", "c"], ["b", "a"], ["b of x", "c of x"], true],
    ];
  for (const [says, owners, its, expected, isKept] of rows) {
    const all = keeping(2), tuple = await all.having(owners), { custody, table, state, told } = all;
    custody.merge(entryOf(its, 2, true), "b");
    await all.written();
    assert.deepEqual(told.filter((each) => !each.endsWith("lost")).toSorted(), expected, says);
    assert.equal((await all.onDisk())?.gone ?? false, isKept, says);
    if (expected.length > 0 || !isKept) continue;
    told.length = 0;
    state.nowMs = GONE_MS - 1;
    custody.tick();
    assert.deepEqual(told, [], "it is waited for");
    state.nowMs = GONE_MS;
    custody.tick();
    assert.deepEqual(told.toSorted(), ["b of x", "c of x"], says);
    custody.forget("x");
    assert.equal(table.has("x"), true, "not all have said that they know");
    for (const site of ["b", "c"]) custody.acked(tuple, site);
    assert.equal(table.has("x"), false);
  }
});

Deno.test("the id of one that was acted on is known for as long as it says, and no longer (O6)", async () => {
  const { custody, table, state, having, written, onDisk } = keeping(),
    tuple = await having(["a", "b"], 1_001);
  custody.end(tuple);
  custody.acked(tuple, "b");
  await written();
  assert.deepEqual(await onDisk(), { owners: ["a"], gone: true, version: 2 });
  assert.equal(custody.remembered, 1);
  custody.tick();
  assert.equal(table.has("x"), true);
  state.wallMs = 1_001_000;
  custody.tick();
  await written();
  assert.deepEqual([table.has("x"), custody.remembered, await onDisk()], [false, 0, null]);
});

Deno.test("the next owner adopts a tuple when all before it are lost, and gives those that are dead a successor (O5)", async () => {
  for (const standing of ["alive", "suspected", "dead"] as const) {
    const { custody, state, told, having, written, tupleOf } = keeping(2);
    await having(["b", "a", "c"]);
    state.spare = ["d"];
    state.standings.set("b", standing);
    if (standing !== "alive") custody.changed("b", standing);
    custody.considerSome();
    await written();
    const { owners, former, how } = tupleOf("x");
    assert.equal(told.includes("x is mine, adopted"), standing !== "alive", standing);
    if (standing === "alive") assert.deepEqual(owners, ["b", "a", "c"]);
    else {
      assert.equal(how, "adopted");
      // Who is suspected may be back: it is the last.
      const expected = standing === "dead" ? ["a", "c", "d", "b"] : ["a", "c", "b"];
      assert.deepEqual([owners, former], [expected, []], standing);
      if (standing !== "dead") continue;
      // Who is dead may have come back, and the others may have lost it: it goes when they have it (M2).
      for (const site of ["c", "d"]) {
        custody.acked(tupleOf("x"), site);
        custody.considerSome();
      }
      assert.deepEqual([tupleOf("x").owners, tupleOf("x").former], [["a", "c", "d"], ["b"]]);
    }
  }
});

/** Who should own what `a` owns with `b` and `c`. */
function mendedOf(
  useless: readonly SiteId[],
  spare: readonly SiteId[],
  { f = 2, stays = false, lacking = [] as readonly SiteId[], owners = ["a", "b", "c"] } = {},
) {
  return mended({ f, owners, former: ["f", "d"] }, {
    site: "a",
    isUseless: (site) => useless.includes(site),
    mayStay: () => stays,
    lacks: (site) => lacking.includes(site),
    choose: (wanted, kept) => {
      const chosen = ["a", ...kept, ...spare].slice(0, Math.max(wanted, kept.length) + 1);
      return { owners: chosen, missing: Math.max(0, wanted + 1 - chosen.length) };
    },
  });
}

Deno.test("an owner that is of no use stays where nobody can take its place (M1)", () => {
  const before = { owners: ["a", "b", "c"], former: ["f", "d"] };
  assert.deepEqual(mendedOf([], ["d"]), { ...before, missing: 0, isChanged: false });
  assert.deepEqual(mendedOf(["b"], ["d", "e"]), {
    ...{ owners: ["a", "c", "d"], former: ["f", "b"], missing: 0, isChanged: true },
  });
  assert.deepEqual(mendedOf(["b", "c"], ["d"]), {
    ...{ owners: ["a", "d", "b"], former: ["f", "c"], missing: 1, isChanged: true },
  });
  assert.deepEqual(mendedOf(["b"], []), {
    ...{ owners: ["a", "c", "b"], former: ["f", "d"], missing: 1, isChanged: false },
  });
  assert.deepEqual(mendedOf([], ["d", "e"], { f: 3 }), {
    ...{ owners: ["a", "b", "c", "d"], former: ["f"], missing: 0, isChanged: true },
  });
});

Deno.test("an owner that is of no use stays until those in its place have what it had (M2)", () => {
  const joint = { owners: ["a", "c", "d", "b"], former: ["f"], missing: 0 }, stays = true;
  assert.deepEqual(mendedOf(["b"], ["d", "e"], { stays }), { ...joint, isChanged: true });
  const { owners } = joint;
  assert.deepEqual(mendedOf(["b"], ["e"], { stays, owners, lacking: ["d"] }), {
    ...{ owners, former: ["f"], missing: 0, isChanged: false },
  });
  const over = { owners: ["a", "c", "d"], former: ["f", "b"], missing: 0, isChanged: true };
  assert.deepEqual(mendedOf(["b"], ["e"], { stays, owners, lacking: ["b"] }), over);
  // It is back before that: then there is one too many.
  assert.deepEqual(mendedOf([], ["e"], { stays, owners, lacking: ["d"] }).isChanged, false);
  assert.deepEqual(mendedOf([], ["e"], { stays, owners }), over);
  assert.deepEqual(mendedOf([], ["e"], { stays, owners, lacking: ["b"] }), over, "nobody waits for it");
  // Where there are too few to take the places nobody that may have it is let go.
  assert.deepEqual(mendedOf(["c", "d", "b"], ["e"], { stays, owners }), {
    ...{ owners: ["a", "e", "c", "d", "b"], former: ["f"], missing: 1, isChanged: true },
  });
  assert.deepEqual(mendedOf(["c", "d", "b"], [], { stays, owners }).isChanged, false);
});

Deno.test("who is replaced before anybody counts on a tuple stays until as many others have it (M2, O1)", async () => {
  for (const isBack of [false, true]) {
    const { custody, state, told, written, tupleOf } = keeping(2);
    custody.take("x", ["a", "b", "c"], { ...CONTENT, f: 2, payload: new Uint8Array(3) }, MARK);
    await written();
    const tuple = tupleOf("x"),
      heldBy = (site: SiteId) => {
        custody.acked(tuple, site);
        custody.considerSome();
      };
    heldBy("c");
    state.spare = ["d"];
    state.standings.set("b", "suspected");
    custody.changed("b", "suspected");
    custody.considerSome();
    assert.deepEqual([tuple.owners, tuple.former], [["a", "c", "d", "b"], []], "d is to know b");
    told.length = 0;
    await written();
    heldBy("c");
    assert.deepEqual([tuple.held, tuple.owners], [false, ["a", "c", "d", "b"]]);
    if (isBack) state.standings.set("b", "alive");
    heldBy(isBack ? "b" : "d");
    assert.equal(tuple.held, true, "as many disks as it was to be on have it");
    assert.deepEqual(told.filter((one) => one.startsWith("x ")), ["x is held", "x is mine, stored"]);
    assert.deepEqual(
      [tuple.owners, tuple.former],
      isBack ? [["a", "c", "d", "b"], []] : [["a", "c", "d"], ["b"]],
    );
    if (isBack) heldBy("d");
    assert.deepEqual([tuple.owners, tuple.former], [["a", "c", "d"], ["b"]]);
  }
});

Deno.test("an owner after this one that does not name a tuple is told of it at once, and it is not adopted before it knows (M2, O5)", async () => {
  for (const knows of [true, false]) {
    const { custody, state, told, having, written } = keeping(1), tuple = await having(["b", "a", "c"]);
    // It had a version that does not name this site, and would adopt that.
    state.unnamed.add("c");
    custody.reconciled("c");
    custody.considerSome();
    assert.deepEqual(told.splice(0), ["c of x"]);
    state.standings.set("b", "suspected");
    custody.changed("b", "suspected");
    custody.considerSome();
    custody.considerSome();
    await written();
    assert.deepEqual([tuple.responsible, told.splice(0)], ["b", ["c of x"]]);
    if (knows) {
      state.unnamed.delete("c");
      custody.acked(tuple, "c");
    } else custody.lacks(tuple, "c");
    custody.considerSome();
    await written();
    assert.ok(told.includes("x is mine, adopted"));
  }
  const { custody, state, told, having, written } = keeping(1);
  await having(["b", "a", "c"]);
  state.unnamed.add("c");
  for (const site of ["b", "c"]) {
    state.standings.set(site, "suspected");
    custody.changed(site, "suspected");
  }
  custody.considerSome();
  await written();
  assert.ok(told.includes("x is mine, adopted"), "nobody waits for one that is lost");
});
