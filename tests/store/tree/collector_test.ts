/** What leaves a site's disk, by capacity and by age (store/tree/collector.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { SYSTEM_RANGE } from "../../../store/members/topology.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { EVICT_TO_SHARE } from "../../../store/model/limits.ts";
import { overlap, pointRange, prefixRange, type Range } from "../../../store/model/range.ts";
import type { Incoming } from "../../../store/rows/rows.ts";
import { Collector } from "../../../store/tree/collector.ts";
import type { Downlinks } from "../../../store/tree/downlinks.ts";
import type { Uplink } from "../../../store/tree/uplink.ts";
import { START_MS, World } from "../../sim/world.ts";

const HORIZON_MS = 1_000, WATERMARK = 500, BYTES = 1_000;
const keyOf = (name: string): Key => packKey(["row", name]);
const rangeOf = (name: string): Range => pointRange(keyOf(name));

/** A site two levels down, or the root, whose links are what a test says. */
function collecting(isRoot = false) {
  const world = new World(), storage = new MemoryStorage();
  const core = new Core(
    {
      ...{
        site: "e",
        parent: isRoot ? null : "c",
        tier: "edge",
        url: "",
        linkAddress: "",
        capacityBytes: 1e9,
      },
      horizonMs: HORIZON_MS,
    },
    {
      clock: {
        nowMs: () => START_MS + world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, callback) => world.after(ms, callback),
        turn: () => world.sleep(0),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage,
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.setPath(isRoot ? [] : ["root", "c"]);
  core.watermark = WATERMARK;
  const state = { used: [] as Range[], fetched: [] as Range[], fedUpTo: 1_000 };
  const touches = (ranges: readonly Range[], range: Range) =>
    ranges.some((each) => overlap(each, range) !== null);
  const downlinks = { uses: (range: Range) => touches(state.used, range), fedUpTo: () => state.fedUpTo };
  const uplink = { fetches: (range: Range) => touches(state.fetched, range), connected: true };
  const collector = new Collector(core, uplink as unknown as Uplink, downlinks as unknown as Downlinks);
  const put = (name: string, row: Partial<Incoming> = {}) =>
    core.rows.put({
      ...{ key: keyOf(name), value: new Uint8Array(BYTES), clock: 10, replica: 1, known: 0, expiresAtMs: 0 },
      ...row,
    });
  const commit = async () => {
    const frozen = core.rows.freeze();
    await storage.commit(frozen.commit);
    core.rows.settle(frozen);
  };
  const left = async (): Promise<string[]> =>
    (await storage.scan(prefixRange(packKey(["row"])))).map(({ key }) => key.replaceAll(/[^a-z ]/g, ""));
  return { core, collector, state, put, commit, left, world };
}

type Site = ReturnType<typeof collecting>;

/** What stands in the way of a range's eviction. */
const KEPT: Readonly<Record<string, (site: Site, range: Range) => void>> = {
  "a child uses it": ({ state }, range) => void state.used.push(range),
  "it is being fetched": ({ state }, range) => void state.fetched.push(range),
  "somebody watches it": ({ core }, range) => core.watchers.add(() => {}, range),
  "a reader waits for it": ({ core }, range) => core.readers.add({}, range),
};

Deno.test("what a child, a reader or a fetch needs is not evicted, nor who is who; the rest is (L1)", async () => {
  for (const [says, holds] of [["nothing needs it", () => {}] as const, ...Object.entries(KEPT)]) {
    const site = collecting(), { core, collector, put, commit, left } = site;
    put("held");
    core.rows.put({
      ...{
        key: packKey(["s", "site", "e"]),
        value: Uint8Array.of(1),
        clock: 1,
        replica: 1,
        known: 0,
        expiresAtMs: 0,
      },
    });
    for (const range of [rangeOf("held"), SYSTEM_RANGE]) core.cover(range);
    await commit();
    holds(site, rangeOf("held"));
    core.capacityBytes = 1;
    await collector.evictToCapacity();
    await commit();
    const isHeld = says !== "nothing needs it";
    assert.deepEqual(await left(), isHeld ? ["rowheld"] : [], says);
    assert.equal(core.coverage.covers(keyOf("held")), isHeld, says);
    assert.equal(core.coverage.hasRange(SYSTEM_RANGE), true);
  }
});

Deno.test("the root keeps all there is, however little room it has", async () => {
  const { core, collector, put, commit, left } = collecting(true);
  put("all");
  core.cover(rangeOf("all"));
  await commit();
  core.capacityBytes = 1;
  await collector.evictToCapacity();
  await collector.evict(rangeOf("all"));
  await commit();
  assert.deepEqual(await left(), ["rowall"]);
  assert.equal(core.coverage.covers(keyOf("all")), true);
});

Deno.test("a row that is pending leaves with its range's coverage, and from the disk once the root has it (L1)", async () => {
  const { core, collector, put, commit, left } = collecting();
  put("pending", { known: 2 });
  core.cover(rangeOf("pending"));
  await commit();
  await collector.evict(rangeOf("pending"));
  await collector.dropUncovered();
  await commit();
  assert.equal(core.coverage.covers(keyOf("pending")), false);
  assert.deepEqual(await left(), ["rowpending"]);
  core.reach[0]?.add(core.rows.head, 77);
  core.pending.settle(core.rows.head);
  await collector.dropUncovered();
  await commit();
  assert.deepEqual(await left(), []);
});

Deno.test("a site goes down to a share of its capacity, the least recently used first, and what is only compared before (L3)", async () => {
  const { core, collector, put, commit, left } = collecting();
  const names = ["a", "b", "c", "d"];
  for (const name of [...names, "stale"]) {
    put(name);
    core.cover(rangeOf(name));
  }
  core.uncover(rangeOf("stale"));
  await commit();
  for (const name of ["b", "a"]) core.coverage.has(keyOf(name));
  const bytes = await core.ports.storage.bytes();
  core.capacityBytes = bytes;
  await collector.evictToCapacity();
  await commit();
  assert.equal((await left()).length, 5, "it is within its capacity");
  core.capacityBytes = bytes - 1;
  await collector.evictToCapacity();
  await commit();
  assert.deepEqual(await left(), names.map((name) => `row${name}`), "the stale one is enough");
  core.capacityBytes = 2.5 * BYTES / EVICT_TO_SHARE;
  await collector.evictToCapacity();
  await commit();
  assert.deepEqual(await left(), ["rowa", "rowb"]);
});

interface Old {
  readonly says: string;
  readonly row: Partial<Incoming>;
  readonly given?: (site: Site) => void;
  readonly goes: boolean;
}

const TOMBSTONE = { value: null } as const;
const OLD: readonly Old[] = [
  { says: "a tombstone below the watermark", row: TOMBSTONE, goes: true },
  { says: "one at the watermark", row: { ...TOMBSTONE, clock: WATERMARK }, goes: true },
  { says: "one above it", row: { ...TOMBSTONE, clock: WATERMARK + 1 }, goes: false },
  { says: "one that is pending to the parent", row: { ...TOMBSTONE, known: 2 }, goes: false },
  {
    says: "one that the parent has and the root not yet",
    row: { ...TOMBSTONE, known: 2 },
    given: ({ core }) => core.reach[1]?.add(core.rows.head, 5),
    goes: false,
  },
  {
    says: "one that the root has by now",
    row: { ...TOMBSTONE, known: 2 },
    given: ({ core }) => core.reach.forEach((reach) => reach.add(core.rows.head, 5)),
    goes: true,
  },
  {
    says: "one that a child was not fed",
    row: TOMBSTONE,
    given: ({ state }) => state.fedUpTo = 0,
    goes: false,
  },
  { says: "a row", row: {}, goes: false },
  { says: "a row that expires later", row: { expiresAtMs: START_MS + 60_000 }, goes: false },
  {
    says: "one that has expired lately",
    row: { expiresAtMs: START_MS + 3_000 - HORIZON_MS / 2 },
    goes: false,
  },
  { says: "one that expired more than a horizon ago", row: { expiresAtMs: START_MS + 1 }, goes: true },
  {
    says: "one that did, and is above the watermark",
    row: { expiresAtMs: START_MS + 1, clock: WATERMARK + 1 },
    goes: false,
  },
];

Deno.test("tombstones and what has long expired go when nobody can need them (L2)", async () => {
  for (const { says, row, given, goes } of OLD) {
    const site = collecting(), { core, collector, put, commit, left, world } = site;
    await world.run(3_000);
    core.cover(rangeOf("old"));
    put("old", row);
    core.stepFed();
    await commit();
    given?.(site);
    await collector.collect();
    await commit();
    assert.deepEqual(await left(), goes ? [] : ["rowold"], says);
    assert.equal(core.collectedTo, goes ? 1 : 0, says);
    if (!goes) continue;
    assert.equal(core.counters["collected"], 1, says);
  }
});

Deno.test("what may not go yet is looked at again, and what an earlier process left is found (L2)", async () => {
  const { core, collector, put, commit, left, state } = collecting();
  core.cover(rangeOf("old"));
  put("old", { value: null });
  core.stepFed();
  await commit();
  state.fedUpTo = 0;
  await collector.collect();
  assert.equal(core.mortal.length, 1, "it is looked at again");
  state.fedUpTo = 1_000;
  core.mortal.length = 0; // as after a start
  await collector.collect();
  await commit();
  assert.deepEqual(await left(), ["rowold"]);
  collector.sweepTo(core.rows.head);
  await collector.collect();
  await commit();
  assert.deepEqual(await left(), []);
});
