/** States that lie beside checkpoints, in parts: how they come to owners, and what is sent and written of them. */
import { strict as assert } from "node:assert";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import { decodeBase, encodeLogHead } from "../../../../functions/sessions/log/kept_log.ts";
import { loadDisk } from "../../../../functions/sessions/log/keepers.ts";
import { STATE_PART_BYTES_MAX, STATE_PARTS_MAX } from "../../../../functions/sessions/log/limits.ts";
import { keyOf } from "../../../../functions/sessions/log/name.ts";
import { NO_STATE } from "../../../../functions/sessions/log/state_parts.ts";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";
import { packKey } from "../../../../store/model/key.ts";
import { prefixRange } from "../../../../store/model/range.ts";
import { Writer } from "../../../../store/model/codec.ts";
import { Cluster, commitOf, name } from "../home/cluster.ts";

const KIB = 1024;
const part = (fill: number, length = 8 * KIB) => new Uint8Array(length).fill(fill);
const filled = (fills: readonly number[]) => fills.map((fill) => part(fill));
const SMALL = { bounds: { batchBytes: 20 * KIB } };

/** A session at s1 with a checkpoint after its first commit. */
async function saved(all: Cluster, fills: readonly number[]) {
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.checkpoint({ at: 1, bytes: part(0, 10), version: "v1", parts: filled(fills) }));
  return home;
}

/** First bytes of the parts that an opening has. */
const fillsOf = async (all: Cluster, at: number): Promise<number[]> =>
  ((await all.open(at, "x")).checkpoint?.parts ?? []).map((one) => one[0] ?? -1);

/** Rows of one kind on a site's disk. */
const rowsOf = async (all: Cluster, at: number, space: string): Promise<number> =>
  (await all.of(all.site(at).disk.scan(prefixRange(packKey([space]))))).length;

const ownerOf = (all: Cluster, ...not: number[]): number =>
  all.sites.findIndex((site, at) => site.isUp && !not.includes(at) && all.logs(at).includes("x"));

const kill = async (all: Cluster, at: number) => {
  all.site(at).crash(false);
  await all.pass(400);
};

Deno.test("a state of many packets is at its owner when the checkpoint is, and is taken over from there", async () => {
  const all = await Cluster.start(3, 1, SMALL);
  await saved(all, [1, 2, 3, 4, 5, 6, 7]);
  await kill(all, 1);
  assert.deepEqual(await fillsOf(all, 2), [1, 2, 3, 4, 5, 6, 7]);
});

Deno.test("a checkpoint that goes on from the one before costs its owners what it adds (state_parts.ts SP1)", async () => {
  const all = await Cluster.start(3, 1, SMALL);
  const home = await saved(all, Array.from({ length: 60 }, (_, i) => i));
  const owner = ownerOf(all, 1);
  const count = () => Number(all.homes(1).status().counters.packet_bytes);
  const before = { bytes: count(), parts: await rowsOf(all, owner, "s") };
  assert.equal(before.parts, 60);
  await all.of(home.commit(commitOf("r2")));
  await all.of(home.checkpoint({ at: 2, bytes: part(0, 10), version: "v1", parts: filled([99]), on: 1 }));
  const sent = count() - before.bytes;
  assert.ok(sent > 8 * KIB && sent < 9 * KIB, `${sent} bytes`);
  assert.equal(await rowsOf(all, owner, "s"), 61);
  await kill(all, 1);
  const fills = await fillsOf(all, 2);
  assert.deepEqual([fills.length, fills[0], fills.at(-1)], [61, 0, 99]);
});

Deno.test("a state that goes on from none takes the place of the one before, and its rows go", async () => {
  const all = await Cluster.start(3, 1, SMALL);
  const home = await saved(all, [1, 2, 3, 4, 5, 6]);
  await all.of(home.commit(commitOf("r2")));
  await all.of(home.checkpoint({ at: 2, bytes: part(0, 10), version: "v1", parts: filled([7, 8, 9, 10]) }));
  const owner = ownerOf(all, 1);
  for (const at of [1, owner]) {
    assert.deepEqual([await rowsOf(all, at, "s"), await rowsOf(all, at, "u")], [4, 0]);
  }
  await all.of(home.end());
  await all.pass(100);
  for (const at of [1, owner]) {
    assert.deepEqual([await rowsOf(all, at, "s"), await rowsOf(all, at, "c")], [0, 0]);
  }
});

Deno.test("commits are held while a large state is on its way to an owner", async () => {
  const all = await Cluster.start(3, 1, SMALL);
  const home = await saved(all, [1]);
  await all.of(home.commit(commitOf("r2")));
  const fills = Array.from({ length: 60 }, (_, i) => i);
  let isDone = false;
  const done = home.checkpoint({ at: 2, bytes: part(0, 10), version: "v1", parts: filled(fills) })
    .then(() => isDone = true);
  for (let i = 0; i < 5; i++) await all.of(home.commit(commitOf(`r${3 + i}`)));
  assert.equal(isDone, false, "thirty trips take longer than five commits");
  await all.of(done);
  await kill(all, 1);
  const opened = await all.open(2, "x");
  assert.deepEqual([opened.checkpoint?.parts?.length, opened.log.length], [60, 5]);
});

Deno.test("an owner that dies while a state is sent to it goes on with the base before, and takes the next", async () => {
  for (const afterMs of [20, 60, 120]) {
    const all = await Cluster.start(3, 1, SMALL);
    const home = await saved(all, [1, 2, 3]);
    const owner = ownerOf(all, 1);
    await all.of(home.commit(commitOf("r2")));
    const parts = filled(Array.from({ length: 30 }, (_, i) => i));
    const done = home.checkpoint({ at: 2, bytes: part(0, 10), version: "v1", parts });
    await all.pass(afterMs);
    all.site(owner).crash(false);
    void all.site(owner).start();
    await all.of(done);
    await all.of(home.commit(commitOf("r3")));
    await all.of(home.checkpoint({ at: 3, bytes: part(0, 10), version: "v1", parts: filled([77]), on: 2 }));
    const now = ownerOf(all, 1);
    assert.deepEqual([await rowsOf(all, now, "s"), await rowsOf(all, now, "u")], [31, 0]);
    await kill(all, 1);
    assert.equal((await fillsOf(all, now)).length, 31);
  }
});

Deno.test("what a home had sent of a state when it died is nobody's", async () => {
  const all = await Cluster.start(3, 1, SMALL);
  const home = await saved(all, [1, 2, 3]);
  const owner = ownerOf(all, 1);
  await all.of(home.commit(commitOf("r2")));
  const parts = filled(Array.from({ length: 30 }, (_, i) => 100 + i));
  void home.checkpoint({ at: 2, bytes: part(0, 10), version: "v1", parts }).catch(() => {});
  while (await rowsOf(all, owner, "u") === 0) await all.pass(5);
  await kill(all, 1);
  const opened = await all.open(owner, "x");
  assert.deepEqual([opened.checkpoint?.at, opened.log.length], [1, 1]);
  const next = opened.start([]);
  await all.of(next.commit(commitOf("r3")));
  await all.of(next.checkpoint({ at: 3, bytes: part(0, 10), version: "v1", parts: filled([9]), on: 1 }));
  assert.deepEqual([await rowsOf(all, owner, "s"), await rowsOf(all, owner, "u")], [4, 0]);
  await all.of(next.rest());
  assert.deepEqual(await fillsOf(all, owner), [1, 2, 3, 9]);
});

Deno.test("a session that rests while a large checkpoint is written wakes with all of it", async () => {
  for (let lateMs = 0; lateMs < 12; lateMs++) {
    const all = await Cluster.start(3, 1, SMALL);
    const home = await saved(all, [1, 2, 3, 4, 5, 6]);
    await all.of(home.commit(commitOf("r2")));
    const parts = filled([7, 8, 9, 10, 11, 12, 13]);
    const done = home.checkpoint({ at: 2, bytes: part(0, 10), version: "v1", parts });
    await all.pass(lateMs);
    await all.of(home.rest());
    const { checkpoint, log } = await all.open(1, "x");
    const fills = (checkpoint?.parts ?? []).map((one) => one[0] ?? -1);
    assert.deepEqual([checkpoint?.at, fills, log.length], [2, [7, 8, 9, 10, 11, 12, 13], 0], `${lateMs} ms`);
    await all.of(done);
  }
});

Deno.test("a checkpoint that goes on from another than the last one, or is beyond its limits, is refused (keepers.ts K7)", async () => {
  const all = await Cluster.start(2, 1, SMALL);
  const home = await saved(all, [1]);
  const of = { at: 1, bytes: part(0, 1), version: "v1" };
  const rows = [
    [{ ...of, on: 7, parts: [] }, /it goes on from 7, and the last one is at 1/],
    [{ ...of, parts: Array.from({ length: STATE_PARTS_MAX + 1 }, () => part(0, 1)) }, /4097 parts/],
    [{ ...of, parts: [part(0, STATE_PART_BYTES_MAX + 1)] }, /a part of a state has 1048641 bytes/],
  ] as const;
  for (const [checkpoint, says] of rows) {
    await assert.rejects(
      all.of(home.checkpoint(checkpoint)),
      (error) => error instanceof HomeError && error.code === "limit_stateful" && says.test(error.message),
    );
  }
});

Deno.test("a base of the first form, with all in itself, is read", async () => {
  const storage = new MemoryStorage();
  const w = new Writer(64).flag(true).uint(3).uint(1).uint(0).text("v1").bytes(part(7, 5)).bytes(part(0, 2));
  const head = { promised: 1, by: "s0", aligned: 1, turn: 0, seed: part(1, 32), version: "v1" };
  const row = (space: string, value: Uint8Array, position: number) => ({
    ...{ key: keyOf(space, name("x")), value, position, clock: 0, replica: 0, known: 0, expiresAtMs: 0 },
  });
  await storage.commit({
    rows: [row("h", encodeLogHead(head), 1), row("c", w.done(), 2)],
    drop: [],
    records: new Map(),
  });
  const { logs } = await loadDisk(storage, { bytes: (length) => part(1, length) }, () => 0);
  assert.deepEqual(logs.map(({ base, parts }) => [base?.at, parts.marks.length]), [[3, 0]]);
  const { base } = decodeBase(w.done());
  assert.deepEqual([base.bytes, base.state], [part(7, 5), NO_STATE]);
});
