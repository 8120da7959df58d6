/** What an owner takes of a ward, and makes of it when its incarnation is over (store/wards/keeper.ts, recovery.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { CLOCK_TICKS_PER_MS, type Row } from "../../../store/model/row.ts";
import { encodeJson, type Ended, endedKey, removedKey, replicaKey } from "../../../store/members/topology.ts";
import { decodeMessage, type Message } from "../../../store/wire/message.ts";
import { wardsKey } from "../../../store/members/configuration.ts";
import { Keeper } from "../../../store/wards/keeper.ts";
import type { WardMessage } from "../../../store/wire/ward_message.ts";
import { WardRecovery } from "../../../store/wards/recovery.ts";
import { START_MS } from "../../sim/world.ts";

const SOURCE = 5, OWNER = 6;
const cause = packKey(["cause"]), effect = packKey(["effect"]);

/** An owner that holds two rows of a source, written at clocks 100 and 200. */
async function holding(ended: Ended | null = { stable: 50 }, bytesMax?: number) {
  const said: Message[] = [], notes: string[] = [];
  let disk = Promise.resolve();
  const core = new Core(
    { site: "o", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => START_MS,
        steadyMs: () => START_MS,
        after: () => () => {},
        turn: () => Promise.resolve(),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: {
        send: (_, bytes) => {
          said.push(decodeMessage(bytes));
          return Promise.resolve();
        },
      },
      fatal: (error) => {
        throw error;
      },
      note: (event, detail) => void notes.push(`${event} ${detail?.from} ${detail?.refused}`),
    },
  );
  core.replica = OWNER;
  core.setPath(["root"]);
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  write(replicaKey(SOURCE), { site: "s", path: ["root", "s"], parent: 1, from: 0 });
  const keeper = new Keeper(core, () => disk, bytesMax);
  const row = (key: Key, clock: number): Row => ({
    key,
    clock,
    replica: SOURCE,
    known: 1,
    position: clock,
    value: new Uint8Array(1),
    expiresAtMs: 0,
  });
  const ward: WardMessage = {
    kind: "ward",
    replica: SOURCE,
    config: 1,
    settled: true,
    after: 0,
    head: 200,
    clock: 200,
    down: [0],
    reach: [0],
    part: 0,
    more: false,
    rows: [row(cause, 100), row(effect, 200)],
  };
  await keeper.receive("s", ward);
  core.topology.wards.changed = true;
  if (ended !== null) write(endedKey(SOURCE), ended);
  core.stable = [1_000, 1_000];
  /** Commits take until the result is called. */
  const stopDisk = () => {
    const written = Promise.withResolvers<void>();
    disk = written.promise;
    return written.resolve;
  };
  return {
    core,
    keeper,
    ward,
    write,
    said,
    notes,
    stopDisk,
    recovery: new WardRecovery(core, keeper, () => 1_000),
  };
}

Deno.test("an owner takes a ward into its own journal when its incarnation is over", async () => {
  const { core, recovery } = await holding();
  await recovery.sweep();
  const rows = await core.rows.lookup([cause, effect]);
  assert.deepEqual(rows.map((row) => row?.clock), [100, 200]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 200);
});

Deno.test("an owner waits for no causes to say of a ward of which the root has all that it is whole (Y6)", async () => {
  const rows: readonly (readonly [string, number, Ended | null, number | undefined])[] = [
    ["the root has all of it", 200, { stable: 50 }, 300],
    ["the root lacks a row", 100, { stable: 50 }, undefined],
    ["its source lives", 200, null, undefined],
    ["its source is on the way to another parent", 200, { stable: 50, next: 8 }, undefined],
  ];
  for (const [says, reach, ended, position] of rows) {
    const { core, keeper, ward, write, recovery } = await holding(null);
    const said = () => core.topology.wards.recovered(SOURCE).get("o")?.position;
    const standsIn = () =>
      keeper.standIn({ kind: "standIn", id: 1, replica: SOURCE, depth: 0, position: 300 }).outcome;
    await keeper.receive("s", { ...ward, after: 200, head: 300, clock: 300, reach: [reach], rows: [] });
    core.stable = [299, 299]; // a child is away
    if (ended !== null) write(endedKey(SOURCE), ended);
    await recovery.sweep();
    assert.deepEqual([said(), standsIn()], [position, "rows"], says);
    const { head } = core.rows;
    await recovery.sweep();
    assert.equal(core.rows.head, head, "it is said once");
    if (position === undefined) continue;
    core.stable = [300, 300];
    await recovery.sweep();
    assert.deepEqual(
      [said(), standsIn(), core.rows.head],
      [position, "behind", head],
      "then it is let go of",
    );
  }
});

Deno.test("an owner's clock is no less than its ward's: else nobody's is where the source's was ahead, and died (Y1)", async () => {
  const { core, keeper, ward } = await holding(null);
  const clock = core.clock.last + 10_000 * CLOCK_TICKS_PER_MS;
  await keeper.receive("s", { ...ward, after: 200, head: 201, clock, rows: [] });
  assert.equal(core.clock.last >= clock, true);
});

Deno.test("an owner takes nothing of a ward of which a part is too old: no effect comes without its cause", async () => {
  const { core, recovery } = await holding();
  core.watermark = 150;
  await recovery.sweep();
  assert.deepEqual(await core.rows.lookup([cause, effect]), [undefined, undefined]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 0);
});

Deno.test("an owner takes the rest of a ward of which the root has what is too old (Y2)", async () => {
  const { core, recovery } = await holding({ stable: 100 });
  core.watermark = 100;
  await recovery.sweep();
  const rows = await core.rows.lookup([cause, effect]);
  assert.deepEqual(rows.map((row) => row?.clock), [undefined, 200]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 200);
});

Deno.test("an owner says for whom it stands in, under which configuration that is known to be in effect, and how far", async () => {
  const { keeper, ward } = await holding(null);
  const said = (replica: number, position = 0) => {
    const { outcome, config, position: reached, rows } = keeper.standIn({
      ...{ kind: "standIn", id: 1, replica, depth: 0, position },
    });
    return [outcome, config, reached, rows.length];
  };
  assert.deepEqual(said(SOURCE, 200), ["rows", 1, 200, 2]);
  assert.deepEqual(said(SOURCE, 201), ["behind", 1, 200, 0]);
  assert.deepEqual(said(SOURCE + 1), ["behind", 0, 0, 0]);
  const next = { ...ward, config: 2, after: 200, head: 300, rows: [] };
  await keeper.receive("s", { ...next, settled: false });
  assert.deepEqual(said(SOURCE, 300), ["rows", 1, 300, 2], "it may not be in effect");
  await keeper.receive("s", { ...next, after: 300, reach: [100] });
  assert.deepEqual(said(SOURCE, 300), ["rows", 2, 300, 1], "the root has the first");
  await keeper.receive("s", { ...next, after: 250, head: 260 });
  assert.deepEqual(said(SOURCE, 300)[2], 300, "what is sent again takes it no further back");
});

Deno.test("an owner has room for what a batch adds, what waits of it counted, and no more (A3, K3)", async () => {
  for (const room of [2, 3, 4]) {
    const { keeper, ward, core } = await holding(null);
    const bytes = keeper.bytes / 2; // of a row
    const limited = new Keeper(core, () => Promise.resolve(), room * bytes);
    const part = (n: number, key: Key, more: boolean): WardMessage => ({
      ...{ ...ward, part: n, more },
      rows: [{ ...ward.rows[0], key, position: 201 + n } as Row],
    });
    // Of the same length as those that it holds.
    const keys = ["three", "fours"].map((name) => packKey([name]));
    await limited.receive("s", ward);
    await limited.receive("s", { ...part(0, keys[0] as Key, true), after: 200, head: 300 });
    await limited.receive("s", { ...part(1, keys[1] as Key, false), after: 200, head: 300 });
    assert.deepEqual([...limited.all()].map(({ position, size }) => [position, size]), [
      room === 4 ? [300, 4] : [200, 2],
    ], `${room}`);
    // What takes the place of what is there adds nothing.
    await limited.receive("s", {
      ...ward,
      after: 200,
      head: 400,
      rows: ward.rows.map((row) => ({ ...row, position: 400 })),
    });
    assert.equal([...limited.all()][0]?.position, 400, `${room}`);
  }
});

Deno.test("an owner leaves a ward alone while its site brings what it has to another parent", async () => {
  const { core, write, recovery } = await holding({ stable: 50, next: 8 });
  await recovery.sweep();
  assert.deepEqual(await core.rows.lookup([cause, effect]), [undefined, undefined]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o"), undefined);
  write(endedKey(SOURCE), { stable: 300, next: 8, settled: true });
  await recovery.sweep();
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 200);
});

Deno.test("an owner that is none any more learns it over the tree, where its source cannot tell", async () => {
  const { core, keeper, write, recovery } = await holding(null);
  const held = () => [...keeper.all()].length;
  // Until the second is in effect, the first holds what was told.
  write(wardsKey(SOURCE), { number: 2, owners: ["p"], previous: ["o"] });
  await recovery.sweep();
  assert.equal(held(), 1);
  write(wardsKey(SOURCE), { number: 3, owners: ["q"], previous: ["p"] });
  await recovery.sweep();
  assert.equal(held(), 0);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o"), undefined);
});

Deno.test("an owner holds no more for all its sources together than it may", async () => {
  const { core, keeper, ward, write } = await holding(null, 100);
  const bytes = keeper.bytes;
  assert.ok(bytes > 50 && bytes <= 100, `${bytes}`);
  write(replicaKey(8), { site: "t", path: ["root", "t"], parent: 1, from: 0 });
  await keeper.receive("t", { ...ward, replica: 8 });
  assert.deepEqual([keeper.bytes, core.counters["ward_refused_full"]], [bytes, 1]);
  // The root has what the first brought: there is room again.
  await keeper.receive("s", { ...ward, after: 200, reach: [200], rows: [] });
  await keeper.receive("t", { ...ward, replica: 8 });
  assert.deepEqual([keeper.bytes, core.counters["ward_refused_full"]], [bytes, 1]);
});

Deno.test("an owner acknowledges a ward when it is on its disk, and not before (K1)", async () => {
  const { keeper, ward, said, stopDisk } = await holding(null);
  const acknowledged = () =>
    said.flatMap((message) =>
      message.kind === "warded" && message.refused === "none" ? [message.position] : []
    );
  assert.deepEqual(acknowledged(), [200]);
  const written = stopDisk();
  const taken = keeper.receive("s", { ...ward, after: 200, head: 300, rows: [] });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(acknowledged(), [200]);
  written();
  await taken;
  assert.deepEqual(acknowledged(), [200, 300]);
});

Deno.test("an owner takes a ward from its living source only: all else is refused, counted, noted once (K2)", async () => {
  const { core, keeper, ward, write, said, notes } = await holding(null);
  write(removedKey("t"), { atMs: 1 });
  write(replicaKey(SOURCE + 2), { site: "t", path: ["root", "t"], parent: 1, from: 0 });
  const next = { ...ward, after: 200, head: 300, rows: [] };
  const refused = async (from: string, message: WardMessage) => {
    said.length = 0;
    await keeper.receive(from, message);
    return said.map((answer) => answer.kind === "warded" ? answer.refused : answer.kind).join();
  };
  assert.equal(await refused("x", next), "stranger", "another's incarnation");
  assert.equal(await refused("x", { ...next, replica: 99 }), "stranger", "an incarnation that nobody has");
  assert.equal(await refused("t", { ...next, replica: SOURCE + 2 }), "stranger", "a site that was removed");
  assert.equal(await refused("s", { ...next, config: 0 }), "older");
  assert.equal(await refused("s", { ...next, clock: 1e15 }), "clock");
  const [row] = ward.rows;
  assert.ok(row !== undefined);
  assert.equal(await refused("s", { ...next, rows: [{ ...row, clock: 1e15 }] }), "clock", "a row of it");
  assert.equal(await refused("s", next), "none");
  write(endedKey(SOURCE), { stable: 50 });
  assert.equal(await refused("s", { ...next, after: 300, head: 400 }), "ended");
  const count = (name: string) => core.counters[`ward_refused_${name}`];
  assert.deepEqual(["stranger", "older", "clock", "ended"].map(count), [3, 1, 2, 1]);
  assert.deepEqual(notes, ["ward_refused x stranger", "ward_refused t stranger", "ward_refused s older"]);
  assert.deepEqual([...keeper.all()].map(({ position }) => position), [300]);
});

Deno.test("an owner forgets a ward when its own source releases it, and not what it was chosen for again since", async () => {
  const { keeper, ward, said } = await holding(null);
  const held = () => [...keeper.all()].map(({ size }) => size);
  const released = (from: string, config: number) => {
    said.length = 0;
    keeper.release(from, { kind: "release", replica: SOURCE, config });
    return said.map((message) => message.kind === "warded" ? message.position : -1);
  };
  assert.deepEqual([released("x", 2), held()], [[], [2]], "another site");
  await keeper.receive("s", { ...ward, config: 3, after: 200, head: 200, rows: [] });
  assert.deepEqual([released("s", 2), held()], [[], [2]], "before it was chosen again");
  assert.deepEqual([released("s", 4), held()], [[0], []]);
  assert.deepEqual([released("s", 4), held()], [[0], []], "an answer that was lost is given again");
});

Deno.test("an owner keeps a ward that is newer than what the tree says, and recovers one of an incarnation that is over", async () => {
  for (const isOver of [false, true]) {
    const { core, keeper, ward, write, recovery } = await holding(isOver ? { stable: 50 } : null);
    const owners = ["others"];
    if (!isOver) await keeper.receive("s", { ...ward, config: 3, after: 200, head: 200, rows: [] });
    write(wardsKey(SOURCE), { number: 2, owners, previous: [] });
    core.topology.wards.changed = true;
    await recovery.sweep();
    assert.equal([...keeper.all()].length, isOver ? 0 : 1);
    assert.equal(core.counters.recovered_rows, isOver ? 2 : undefined);
  }
});

Deno.test("an owner takes a batch whole: nothing of one that lacks a part, or whose link went (A2)", async () => {
  const { keeper, ward, said } = await holding(null);
  const positions = () => [...keeper.all()].map(({ position, size }) => [position, size]);
  const next = { ...ward, after: 200, head: 300 };
  const row = (key: Key, position: number) => ({ ...ward.rows[0], key, position, clock: position } as Row);
  const parts = ["a", "b", "c"].map((name, part) => ({
    ...next,
    part,
    more: part < 2,
    rows: [row(packKey([name]), 201 + part)],
  }));
  const send = async (...which: readonly number[]) => {
    said.length = 0;
    for (const part of which) await keeper.receive("s", parts[part] as WardMessage);
    return said.flatMap((message) => message.kind === "warded" ? [message.refused] : []);
  };
  assert.deepEqual(await send(0, 2), [], "the second is missing");
  assert.deepEqual(await send(1), []);
  assert.deepEqual(positions(), [[200, 2]]);
  await send(0, 1);
  keeper.disconnected("s");
  assert.deepEqual(await send(2), ["gap"], "what came over another link counts for nothing");
  assert.deepEqual(positions(), [[200, 2]]);
  assert.deepEqual(await send(0, 1, 2), ["none"]);
  assert.deepEqual(positions(), [[300, 5]]);
});
