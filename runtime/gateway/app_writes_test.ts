import assert from "node:assert/strict";
import type { Mutation } from "../../functions/vocabulary/store_client.ts";
import { encodeValue } from "../../functions/values/value.ts";
import { packKey, unpackKey } from "../../store/model/key.ts";
import type { LiveApp, LiveVersion } from "../deploy/app_table.ts";
import { AppWrites } from "./app_writes.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

const version = (name: string, indexes: Record<string, string[]>, at?: "root") =>
  ({
    app: "shop",
    version: name,
    manifest: { tables: { users: { key: ["id"], indexes, at } } },
  }) as unknown as LiveVersion;

const TOWN = { byTown: ["town"] };
const one = version("1", {}), two = version("2", TOWN);

function setUp(live: Partial<LiveApp> | undefined) {
  const state = { live };
  const writes = new AppWrites({ get: () => state.live as LiveApp | undefined });
  return { state, writes };
}

const put = (row: unknown, lead: string[] = []): Mutation => ({
  kind: "set",
  key: packKey([...lead, "t", "users", "ann"]),
  value: encodeValue(row),
});

/** Keys of the entries that were added, without their nonces. */
const added = (mutations: readonly Mutation[]) =>
  mutations.slice(1).map(({ key }) => unpackKey(key).slice(0, -1));

Deno.test("a put of a version that does not know an index gets its entry (AWR1)", () => {
  const rome = { id: "ann", town: "rome" };
  const cases: [string, Partial<LiveApp>, LiveVersion, unknown, unknown[]][] = [
    ["alone", { current: one }, one, rome, []],
    ["prepared", { current: one, preparing: two }, one, rome, ["rome"]],
    ["rolled out", { current: one, rollout: { next: two, weight: 5 } }, one, rome, ["rome"]],
    ["a stream goes on", { current: two }, one, rome, ["rome"]],
    ["knows it", { current: one, preparing: two }, two, rome, []],
    ["no such field", { current: two }, one, { id: "ann" }, []],
    ["a field that is no part of a key", { current: two }, one, { id: "ann", town: { x: 1 } }, []],
    ["no object", { current: two }, one, "ann", []],
  ];
  for (const [name, live, from, row, towns] of cases) {
    const { writes } = setUp(live);
    const entries = added(writes.of(from).extended([put(row)]));
    assert.deepEqual(entries, towns.map((town) => ["i", "users", "byTown", town, "ann"]), name);
  }
});

Deno.test("entries of a table at the root stay at the root, and other rows get none", () => {
  const old = version("1", {}, "root");
  const from = setUp({ current: old, preparing: version("2", TOWN, "root") }).writes.of(old);
  assert.deepEqual(added(from.extended([put({ id: "ann", town: "rome" }, ["root"])])), [
    ["root", "i", "users", "byTown", "rome", "ann"],
  ]);
  const others: Mutation[] = [
    { kind: "set", key: packKey(["kv", "users"]), value: encodeValue({ town: "rome" }) },
    { kind: "delete", key: packKey(["root", "t", "users", "ann"]) },
    { kind: "set", key: packKey(["root", "t", "userships", "ann"]), value: encodeValue({ town: "rome" }) },
  ];
  assert.equal(from.extended(others), others);
});

Deno.test("a version that is announced while another runs is heard of with the next write", () => {
  const { state, writes } = setUp({ current: one });
  const from = writes.of(one);
  assert.equal(from.extended([put({ id: "ann", town: "rome" })]).length, 1);
  state.live = { current: one, preparing: two };
  assert.equal(from.extended([put({ id: "ann", town: "rome" })]).length, 2);
});

Deno.test("a function of a deleted app writes nothing (AWR2)", () => {
  const { state, writes } = setUp({ current: one });
  const from = writes.of(one);
  state.live = undefined;
  assert.throws(
    () => from.extended([put({ id: "ann" })]),
    (error) => error instanceof Problem && error.code === "app_unknown",
  );
});

Deno.test("written waits for what is under way, failed or not, and for no other app (AWR1)", async () => {
  const { writes } = setUp({ current: one });
  const from = writes.of(one);
  const first = Promise.withResolvers<void>(), second = Promise.withResolvers<void>();
  void from.track(first.promise);
  from.track(second.promise).catch(() => {});
  await writes.written("other");
  let done = false;
  const waiting = writes.written("shop").then(() => done = true);
  first.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(done, false);
  second.reject(new Error("the disk is full"));
  await waiting;
});
