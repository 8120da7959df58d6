/** What a site fetches for a session that has come to it, and what it does not (store/session/warming.ts). */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { EVICT_TO_SHARE, FOOTPRINT_SESSIONS_MAX, WARM_EVERY_MS } from "../../../store/model/limits.ts";
import { pointRange, type Range } from "../../../store/model/range.ts";
import type { Core } from "../../../store/core/core.ts";
import { Warming } from "../../../store/session/warming.ts";
import type { Uplink } from "../../../store/tree/uplink.ts";
import { World } from "../../sim/world.ts";

const CAPACITY_BYTES = 1_000;
const HERE = 20, THERE = 30;
const rangeOf = (i: number): Range => pointRange(packKey(["row", i]));
const sessionOf = (i: number): Uint8Array => Uint8Array.of(i >> 16, i >> 8, i);

/** A site whose disk and link are what a test says. */
function warming(hasUplink = true) {
  const world = new World(), sent: unknown[] = [], fetched: Range[] = [];
  const state = { bytes: 0, closed: false, covered: [] as Range[], fails: false };
  const sites = new Map([[HERE, { site: "d" }], [THERE, { site: "s" }]]);
  const core = {
    config: { site: "d" },
    capacityBytes: CAPACITY_BYTES,
    get closed() {
      return state.closed;
    },
    steady: { nowMs: () => world.nowMs },
    topology: { incarnation: (number: number) => sites.get(number) },
    coverage: { hasRange: (range: Range) => state.covered.includes(range) },
    ports: {
      clock: { after: (ms: number, callback: () => void) => world.after(ms, callback) },
      storage: { bytes: () => Promise.resolve(state.bytes) },
    },
    counters: { warmed: 0 },
    count: () => void core.counters.warmed++,
    send: (to: string, message: { kind: string }) => void sent.push([to, message.kind]),
  };
  const uplink = {
    fetch: (range: Range) => {
      fetched.push(range);
      return state.fails ? Promise.reject(new Error("no answer")) : Promise.resolve();
    },
  };
  const all = new Warming(core as unknown as Core, hasUplink ? uplink as unknown as Uplink : null);
  return { warming: all, world, core, state, sent, fetched };
}

Deno.test("what a session touched elsewhere is fetched where there is room, and not what is here (F2)", async () => {
  const ranges = [0, 1, 2, 3].map(rangeOf);
  const rows: readonly (readonly [string, (all: ReturnType<typeof warming>) => void, readonly number[]])[] = [
    ["there is room", () => {}, [0, 1, 2, 3]],
    ["some is here", ({ state }) => void state.covered.push(...ranges.slice(1, 3)), [0, 3]],
    ["as much as may be", ({ state }) => void (state.bytes = CAPACITY_BYTES * EVICT_TO_SHARE), [0, 1, 2, 3]],
    ["it is near its capacity", ({ state }) => void (state.bytes = CAPACITY_BYTES * EVICT_TO_SHARE + 1), []],
    ["it has stopped", ({ state }) => void (state.closed = true), []],
    ["the parent does not answer (F1)", ({ state }) => void (state.fails = true), [0]],
  ];
  for (const [says, given, expected] of rows) {
    const all = warming();
    given(all);
    await all.warming.told(ranges);
    assert.deepEqual(all.fetched, expected.map((i) => ranges[i]), says);
    assert.equal(all.core.counters.warmed, all.state.fails ? 0 : expected.length, says);
  }
});

Deno.test("a session's footprint is asked for where it comes from, after its own reads, and not again and again", async () => {
  const { warming: all, world, sent } = warming();
  const session = sessionOf(1);
  all.arrived(session, HERE);
  all.arrived(session, 99); // of an incarnation that nobody knows
  await world.run(5_000);
  assert.deepEqual(sent, []);
  all.arrived(session, THERE);
  assert.deepEqual(sent, [], "its own reads come first");
  all.arrived(session, THERE);
  await world.run(world.nowMs + WARM_EVERY_MS - 1);
  assert.deepEqual(sent, [["s", "warm"]]);
  await world.run(world.nowMs + 1);
  all.arrived(session, THERE);
  all.close();
  await world.run(world.nowMs + WARM_EVERY_MS);
  assert.equal(sent.length, 1, "a site that has stopped asks nothing");
  const root = warming(false);
  root.warming.arrived(session, THERE);
  await root.world.run(5_000);
  assert.deepEqual(root.sent, [], "the root has all there is");
});

Deno.test("who asks for a footprint is told what the session touched, as long as it is among so many", () => {
  const { warming: all, sent } = warming();
  all.footprint(sessionOf(0)).note(rangeOf(0));
  all.asked("d", sessionOf(9));
  all.footprint(sessionOf(9));
  all.asked("d", sessionOf(9));
  assert.deepEqual(sent, [], "nothing was touched");
  all.asked("d", sessionOf(0));
  assert.deepEqual(sent, [["d", "footprint"]]);
  for (let i = 1; i < FOOTPRINT_SESSIONS_MAX / 2 + 1; i++) all.footprint(sessionOf(i));
  all.asked("d", sessionOf(0));
  assert.equal(sent.length, 2, "it is one of the older half");
  for (let i = 1; i < FOOTPRINT_SESSIONS_MAX + 1; i++) all.footprint(sessionOf(10_000_000 + i));
  all.asked("d", sessionOf(0));
  assert.equal(sent.length, 2, "it is forgotten");
});
