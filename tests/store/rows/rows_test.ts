/** Reads of the rows of a site whose bytes are bounded. */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { HybridClock } from "../../../store/model/clock.ts";
import { Wall } from "../../../store/model/wall.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import type { ScanOptions } from "../../../store/model/ports.ts";
import { STEP_BYTES, STEP_ROWS } from "../../../store/model/limits.ts";
import { prefixRange, type Range } from "../../../store/model/range.ts";
import { type Row, rowBytes } from "../../../store/model/row.ts";
import { Rows } from "../../../store/rows/rows.ts";

/** Counts the rows that it gave. */
class CountingStorage extends MemoryStorage {
  scanned = 0;

  override async scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    const rows = await super.scan(range, options);
    this.scanned += rows.length;
    return rows;
  }

  /** Long ones. */
  got = 0;

  override async getMany(
    ...asked: Parameters<MemoryStorage["getMany"]>
  ): ReturnType<MemoryStorage["getMany"]> {
    const rows = await super.getMany(...asked);
    this.got += rows.filter((row) => row !== undefined).length;
    return rows;
  }
}

Deno.test("a list ends with the row that brings it to its bytes, and reads few beyond it", async () => {
  const storage = new CountingStorage();
  const turns = { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() };
  const clock = new HybridClock(new Wall(turns));
  const rows = new Rows({ storage, clock, turns, nowMs: () => 1, applied: () => {} });
  for (let i = 0; i < 1_000; i++) {
    const key = packKey(["big", i]);
    rows.put({ key, value: new Uint8Array(1_000), clock: 1, replica: 1, known: 0, expiresAtMs: 0 });
  }
  const frozen = rows.freeze();
  await storage.commit(frozen.commit);
  rows.settle(frozen);
  const range = prefixRange(packKey(["big"]));
  for (const reverse of [false, true]) {
    storage.scanned = 0;
    const cut = await rows.list(range, 1_000, reverse, 50_000);
    assert.deepEqual([cut.rows.length, cut.full], [50, true]);
    assert.ok(storage.scanned < 100, `${storage.scanned} rows were read for 50`);
    assert.deepEqual(cut.range, {
      start: reverse ? cut.rows.at(-1)?.key : range.start,
      end: reverse ? range.end : cut.rows.at(-1)?.key + "\0",
    });
    const whole = await rows.list(range, 2_000, reverse, 10_000_000);
    assert.deepEqual([whole.rows.length, whole.full], [1_000, false]);
  }
});

Deno.test("a list of all rows of a range is read in steps, and what is applied lies in its place among them", async () => {
  const storage = new CountingStorage(), stepRows = 10;
  let turns = 0, most = 0, before = 0;
  const clocks = {
    nowMs: () => 1,
    steadyMs: () => 1,
    after: () => () => {},
    turn: () => {
      turns++;
      most = Math.max(most, storage.scanned - before);
      before = storage.scanned;
      return Promise.resolve();
    },
  };
  const clock = new HybridClock(new Wall(clocks));
  const rows = new Rows({ storage, clock, turns: clocks, nowMs: () => 1, stepRows, applied: () => {} });
  const put = (i: number, value: Uint8Array | null) =>
    rows.put({ key: packKey(["row", i]), value, clock: 1, replica: 1, known: 0, expiresAtMs: 0 });
  for (let i = 0; i < 200; i += 2) put(i, i % 4 === 0 ? null : new Uint8Array([i]));
  const frozen = rows.freeze();
  await storage.commit(frozen.commit);
  rows.settle(frozen);
  for (let i = 1; i < 200; i += 2) put(i, new Uint8Array([i]));
  const range = prefixRange(packKey(["row"]));
  for (const reverse of [false, true]) {
    turns =
      most =
      before =
      storage.scanned =
        0;
    const { seen, rows: live } = await rows.list(range, 0, reverse);
    const keys = Array.from({ length: 200 }, (_, i) => packKey(["row", reverse ? 199 - i : i]));
    assert.deepEqual(seen.map(({ key }) => key), keys);
    assert.deepEqual([live.length, turns, most], [150, 100 / stepRows, stepRows]);
  }
});

Deno.test("what is committed is told from memory; what has to be read for it is read in steps", async () => {
  const storage = new CountingStorage();
  let turns = 0;
  const clocks = {
    nowMs: () => 1,
    steadyMs: () => 1,
    after: () => () => {},
    turn: () => Promise.resolve(void turns++),
  };
  const clock = new HybridClock(new Wall(clocks));
  const rows = new Rows({ storage, clock, turns: clocks, nowMs: () => 1, applied: () => {} });
  const keys = Array.from({ length: 6 }, (_, i) => packKey(["long", i]));
  for (const key of keys) {
    rows.put({ key, value: new Uint8Array(STEP_BYTES / 2), clock: 1, replica: 1, known: 0, expiresAtMs: 0 });
  }
  const frozen = rows.freeze();
  await storage.commit(frozen.commit);
  rows.settle(frozen);
  assert.deepEqual((await rows.committed(keys)).map(({ key }) => key), keys);
  assert.equal(storage.got, 0);
  rows.told();
  assert.deepEqual((await rows.committed(keys)).map(({ key }) => key), keys);
  assert.deepEqual([storage.got, turns], [6, 2]);
  assert.deepEqual((await rows.heads([...keys, packKey(["none"])])).map((row) => row?.value?.length), [
    ...keys.map(() => 1),
    undefined,
  ]);
});

Deno.test("a row in whose place nothing that it was a part of stands is told as gone: what is dropped, and what was stale (T2)", async () => {
  const gone: number[] = [];
  const clocks = { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() };
  const clock = new HybridClock(new Wall(clocks));
  const rows = new Rows({
    ...{ storage: new MemoryStorage(), clock, turns: clocks, nowMs: () => 1, applied: () => {} },
    isStale: ({ replica }) => replica === 9,
    gone: ({ clock }) => void gone.push(clock),
  });
  const of = (clock: number, replica: number) => ({
    ...{ key: packKey(["row"]), value: new Uint8Array(1), clock, replica, known: 0, expiresAtMs: 0 },
  });
  rows.put(of(5, 9));
  assert.equal(rows.apply(undefined, of(3, 1)), true, "what is stale stands in nobody's way");
  assert.deepEqual(gone, [5]);
  assert.equal(rows.apply(undefined, of(4, 1)), true);
  assert.equal(rows.apply(undefined, of(2, 1)), false);
  assert.deepEqual(gone, [5], "the newer one stands for the older");
  const [row] = await rows.lookup([packKey(["row"])]);
  assert.ok(row !== undefined);
  rows.drop(row);
  assert.deepEqual(gone, [5, 4]);
});

Deno.test("reads show what is applied, what a commit under way writes, and what the disk has, each over the next (W3)", async () => {
  const storage = new MemoryStorage();
  const clocks = { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() };
  const clock = new HybridClock(new Wall(clocks));
  const rows = new Rows({ storage, clock, turns: clocks, nowMs: () => 1, applied: () => {} });
  const keyOf = (name: string) => packKey(["row", name]);
  let version = 0;
  const put = (name: string) =>
    rows.put({
      ...{ key: keyOf(name), value: Uint8Array.of(++version), clock: version, replica: 1, known: 0 },
      expiresAtMs: 0,
    });
  const range = prefixRange(packKey(["row"]));
  const shown = async (reverse = false) =>
    (await rows.list(range, 0, reverse)).rows.map(({ value }) => value?.[0]);
  for (const name of ["a", "b", "c", "d"]) put(name); // 1 to 4
  let frozen = rows.freeze();
  assert.deepEqual(await shown(), [1, 2, 3, 4], "under way");
  await storage.commit(frozen.commit);
  rows.settle(frozen);
  put("b"); // 5
  rows.drop({ key: keyOf("c"), clock: 3 });
  rows.put({ key: packKey(["other"]), value: null, clock: 9, replica: 1, known: 0, expiresAtMs: 0 });
  frozen = rows.freeze();
  put("d"); // 6
  put("e"); // 7
  assert.deepEqual(await shown(), [1, 5, 6, 7]);
  assert.deepEqual(await shown(true), [7, 6, 5, 1]);
  const found = await rows.lookup(["a", "b", "c", "d", "e", "f"].map(keyOf));
  assert.deepEqual(found.map((row) => row?.value?.[0]), [1, 5, undefined, 6, 7, undefined]);
  const heads = await rows.heads(["b", "c", "d"].map(keyOf));
  assert.deepEqual(heads.map((row) => row?.clock), [5, undefined, 6]);
  put("c"); // 8: again, while the drop is under way
  assert.deepEqual(await shown(), [1, 5, 8, 6, 7]);
  await storage.commit(frozen.commit);
  rows.settle(frozen);
  assert.deepEqual(await shown(), [1, 5, 8, 6, 7]);
});

Deno.test("what a read finds is kept, unless a commit has ended meanwhile: it may be of before (row_cache.ts C1)", async () => {
  const arrives = Promise.withResolvers<void>();
  const storage = new CountingStorage(), getMany = storage.getMany.bind(storage);
  const turns = { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() };
  const rows = new Rows({
    ...{ storage, turns, clock: new HybridClock(new Wall(turns)) },
    ...{ nowMs: () => 1, applied: () => {} },
  });
  const key = packKey(["read"]);
  const rowOf = (clock: number) => ({
    ...{ key, value: new Uint8Array([clock]), clock, replica: 1, known: 0, expiresAtMs: 0 },
    position: clock,
  });
  await storage.commit({ rows: [rowOf(1)], drop: [], records: new Map() });
  storage.getMany = async (...asked) => {
    const found = await getMany(...asked);
    await arrives.promise;
    return found;
  };
  const early = rows.lookup([key]);
  rows.put(rowOf(2));
  const frozen = rows.freeze();
  await storage.commit(frozen.commit);
  rows.settle(frozen);
  arrives.resolve();
  assert.equal((await early)[0]?.clock, 1, "it was asked before");
  assert.equal((await rows.lookup([key]))[0]?.clock, 2);

  const other = packKey(["other"]);
  await storage.commit({ rows: [{ ...rowOf(3), key: other }], drop: [], records: new Map() });
  for (const reads of [1, 0]) {
    storage.got = 0;
    assert.equal((await rows.lookup([other]))[0]?.clock, 3);
    assert.equal(storage.got, reads, "it is told from memory from then on");
  }
});

Deno.test("many keys that only the disk has are looked up in steps, up to the row that brings them to their bytes", async () => {
  const storage = new CountingStorage(), COUNT = 3 * STEP_ROWS;
  let before = 0, mostAtOnce = 0;
  const turn = () => {
    mostAtOnce = Math.max(mostAtOnce, storage.got - before);
    before = storage.got;
    return Promise.resolve();
  };
  const clocks = { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn };
  const clock = new HybridClock(new Wall(clocks));
  const rows = new Rows({ storage, clock, turns: clocks, nowMs: () => 1, applied: () => {} });
  const keys = Array.from({ length: COUNT }, (_, i) => packKey(["row", i]));
  const all = keys.map((key, i): Row => ({
    ...{ key, value: new Uint8Array(100), clock: 1, replica: 1, known: 0, expiresAtMs: 0 },
    position: i + 1,
  }));
  await storage.commit({ rows: all, drop: [], records: new Map() });
  const some = await rows.lookup(keys, 2 * STEP_ROWS * rowBytes(all[0] as Row));
  assert.deepEqual(some.map((row) => row?.key), keys.slice(0, 2 * STEP_ROWS));
  assert.equal(storage.got, 2 * STEP_ROWS);
  await turn();
  const committed = await rows.committed(keys);
  assert.deepEqual(committed.map(({ key }) => key).sort(), keys.toSorted());
  await turn();
  const asked = [...keys.map((key) => key + "\0" as Key), ...keys];
  assert.deepEqual((await rows.lookup(asked)).map((row) => row?.key), [
    ...keys.map(() => undefined),
    ...keys,
  ]);
  await turn();
  assert.ok(mostAtOnce > 0 && mostAtOnce <= STEP_ROWS, `${mostAtOnce} at once`);
});
