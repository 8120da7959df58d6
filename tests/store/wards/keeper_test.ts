/** What an owner takes into a ward, and what it says (store/wards/keeper.ts, store/wards/ward.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { encodeJson, endedKey, removedKey, replicaKey } from "../../../store/members/topology.ts";
import { wardsKey } from "../../../store/members/configuration.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { CLOCK_AHEAD_MS_MAX, WARD_BYTES_MAX } from "../../../store/model/limits.ts";
import { CLOCK_TICKS_PER_MS, type Row } from "../../../store/model/row.ts";
import { Keeper } from "../../../store/wards/keeper.ts";
import { Ward } from "../../../store/wards/ward.ts";
import { decodeMessage, type Message } from "../../../store/wire/message.ts";
import type { Warded, WardMessage } from "../../../store/wire/ward_message.ts";
import { wireBytes } from "../../../store/wire/wire_row.ts";
import { ProcessClock, World } from "../../sim/world.ts";

const SOURCE = 30, OTHER = 31;

const rowOf = (name: string, position: number, bytes = 4): Row => ({
  ...{ key: packKey([name]), value: new Uint8Array(bytes), clock: position, replica: SOURCE, position },
  ...{ known: 9, expiresAtMs: 0 },
});

const messageOf = (message: Partial<WardMessage>): WardMessage => ({
  ...{ kind: "ward", replica: SOURCE, config: 2, settled: true, after: 0, head: 10, clock: 10 },
  ...{ down: [], reach: [0], part: 0, more: false, rows: [] },
  ...message,
});

/** An owner, which knows of two sources s and t. */
function owner(bytesMax?: number) {
  const said: Message[] = [];
  const core = new Core(
    { site: "o", parent: "root", tier: "", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: new ProcessClock(new World(), { skewMs: 0, drift: 0 }),
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: {
        send: (_, message) => {
          said.push(decodeMessage(message));
          return Promise.resolve();
        },
      },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = 9;
  core.setPath(["root"]);
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  write(replicaKey(SOURCE), { site: "s", path: ["root", "s"], parent: 1, from: 0 });
  write(replicaKey(OTHER), { site: "t", path: ["root", "t"], parent: 1, from: 0 });
  let commits = Promise.withResolvers<void>();
  commits.resolve();
  const keeper = new Keeper(core, () => commits.promise, bytesMax);
  return {
    ...{ core, keeper, write },
    holdCommits: () => commits = Promise.withResolvers<void>(),
    /** What it says to a message, in a few words. */
    async hears(from: string, message: Partial<WardMessage>): Promise<readonly unknown[]> {
      said.length = 0;
      await keeper.receive(from, messageOf(message));
      return said.map((each) => {
        const { refused, position } = each as Warded;
        return refused === "none" ? position : refused;
      });
    },
    said,
  };
}

Deno.test("an owner takes from the living incarnation's own site, under no older configuration (K2)", async () => {
  const { hears, write, core } = owner();
  assert.deepEqual(await hears("s", {}), [10]);
  assert.deepEqual(await hears("t", {}), ["stranger"]);
  assert.deepEqual(await hears("s", { replica: 99 }), ["stranger"]);
  assert.deepEqual(await hears("s", { config: 1, head: 12 }), ["older"]);
  assert.deepEqual(await hears("s", { config: 2, head: 11 }), [11]);
  const ahead = (core.wall.nowMs() + 2 * CLOCK_AHEAD_MS_MAX) * CLOCK_TICKS_PER_MS;
  assert.deepEqual(await hears("s", { clock: ahead }), ["clock"]);
  write(endedKey(SOURCE), { stable: 5 });
  assert.deepEqual(await hears("s", { head: 13 }), ["ended"]);
  write(removedKey("t"), { atMs: 1 });
  assert.deepEqual(await hears("t", { replica: OTHER }), ["stranger"]);
});

Deno.test("an owner acknowledges what is on its disk, and what is contiguous (K1, A1, A2)", async () => {
  const { hears, keeper, holdCommits, said } = owner();
  assert.deepEqual(await hears("s", { rows: [rowOf("a", 3)], head: 5 }), [5]);
  assert.deepEqual(await hears("s", { after: 6, head: 9 }), ["gap"]);
  const held = holdCommits(), taking = hears("s", { after: 5, head: 8, rows: [rowOf("b", 7)] });
  await Promise.resolve();
  assert.deepEqual(said, []);
  // Nor where it says what it lacks: its source goes on from there, and tells what lies before.
  await keeper.receive("s", messageOf({ after: 9, head: 12 }));
  assert.deepEqual(said.map((each) => (each as Warded).position), [5]);
  said.length = 0;
  held.resolve();
  assert.deepEqual(await taking, [8]);
  // Of a batch in parts nothing is taken before all of them are there, in their order.
  const part = (n: number, more: boolean) =>
    hears("s", { after: 8, head: 20, part: n, more, rows: [rowOf(`part${n}`, 10 + n)] });
  assert.deepEqual(await part(0, true), []);
  assert.deepEqual(await part(2, false), []);
  keeper.disconnected("t");
  const rows = () => [...keeper.all()].flatMap((ward) => [...ward.rows()].map(({ position }) => position));
  assert.deepEqual(rows(), [3, 7]);
  assert.deepEqual(await part(1, false), [20]);
  assert.deepEqual(rows(), [3, 7, 10, 11]);
  assert.deepEqual(await part(0, true), []);
  keeper.disconnected("s");
  assert.deepEqual(await part(1, false), ["gap"]);
  // What the root has goes, and what comes late says nothing of how far it reaches.
  assert.deepEqual(await hears("s", { after: 20, head: 22, reach: [7] }), [22]);
  assert.deepEqual(rows(), [10, 11]);
  assert.deepEqual(await hears("s", { head: 21, rows: [rowOf("a", 4)], reach: [3] }), [22]);
});

Deno.test("of the newest configuration an owner says that it is in effect only where its source did", async () => {
  const { hears, keeper } = owner();
  const ask = () => keeper.standIn({ kind: "standIn", id: 1, replica: SOURCE, depth: 0, position: 0 }).config;
  assert.equal(ask(), 0);
  await hears("s", { config: 3, settled: false });
  assert.equal(ask(), 0);
  await hears("s", { config: 3 });
  assert.equal(ask(), 3);
  await hears("s", { config: 4, settled: false });
  assert.equal(ask(), 3);
});

Deno.test("all wards together are bounded, with what waits for the rest of its batch (K3)", async () => {
  const [small, large] = [rowOf("a", 3, 100), rowOf("b", 4, 1_000)];
  const max = wireBytes(small) + wireBytes(large);
  const { hears, keeper } = owner(max);
  assert.deepEqual(await hears("s", { rows: [small], more: true }), []);
  const others = [{ ...large, value: new Uint8Array(1_001), replica: OTHER }];
  assert.deepEqual(await hears("t", { replica: OTHER, rows: others }), ["full"]);
  assert.deepEqual(await hears("t", { replica: OTHER, rows: [large] }), [10]);
  assert.deepEqual(await hears("s", { part: 1, rows: [rowOf("c", 5)] }), ["full"], "what was staged is gone");
  assert.deepEqual(await hears("s", { part: 1 }), ["gap"]);
  assert.deepEqual(await hears("s", { rows: [small] }), [10]);
  assert.equal(keeper.bytes, max);
  assert.deepEqual(await hears("s", { after: 10, head: 12, rows: [rowOf("a", 11, 101)] }), ["full"]);
  assert.deepEqual(await hears("s", { after: 10, head: 12, rows: [rowOf("a", 11, 99)] }), [12]);
});

Deno.test("one ward is bounded, to a byte (A3)", () => {
  const ward = new Ward(SOURCE, () => {}), empty = wireBytes(rowOf("a", 1, 0));
  const message = (bytes: number, part: number, name = "a") =>
    messageOf({ part, more: true, rows: [rowOf(name, 1, bytes)] });
  const half = WARD_BYTES_MAX / 2 - empty;
  assert.equal(ward.hasRoom(message(2 * half + empty, 0), Infinity), true);
  assert.equal(ward.hasRoom(message(2 * half + empty + 1, 0), Infinity), false);
  assert.equal(ward.hasRoom(message(half, 0), half + empty), true);
  assert.equal(ward.hasRoom(message(half, 0), half + empty - 1), false);
  assert.equal(ward.stage(message(half, 0)), null);
  assert.equal(ward.hasRoom(message(half, 1, "b"), Infinity), true);
  assert.equal(ward.hasRoom(message(half + 1, 1, "b"), Infinity), false);
  assert.equal(ward.hasRoom(message(half + 1, 0, "b"), Infinity), true, "a batch begins anew");
  assert.equal(ward.hasRoom(messageOf({ part: 1 }), -1), true, "without rows it takes no room");
});

Deno.test("an owner forgets what its source releases, and what the tree says to be others'", async () => {
  const { hears, keeper, said, core } = owner();
  const wards = () => [...keeper.all()].length;
  await hears("s", { rows: [rowOf("a", 3)] });
  keeper.release("t", { kind: "release", replica: SOURCE, config: 3 });
  keeper.release("s", { kind: "release", replica: SOURCE, config: 2 });
  assert.equal(wards(), 1);
  said.length = 0;
  keeper.release("s", { kind: "release", replica: SOURCE, config: 3 });
  assert.deepEqual([wards(), (said[0] as Warded).config], [0, 3]);
  await hears("s", { rows: [rowOf("a", 3)] });
  const configured = (number: number, owners: readonly string[]) => {
    core.rows.put({
      ...core.own(wardsKey(SOURCE), encodeJson({ number, owners, previous: [] })),
      replica: SOURCE,
    });
    keeper.forgetFormer();
    return wards();
  };
  assert.equal(configured(2, ["x"]), 1, "it has heard of that one");
  assert.equal(configured(3, ["o"]), 1);
  assert.equal(configured(4, ["x"]), 0);
});
