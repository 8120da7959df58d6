/**
 * The contract of `Storage` (store/model/ports.ts), as one suite over every implementation.
 *
 * A subject is a disk that can be opened again. Where a test needs a crash, the subject says how it crashes;
 * the engines that lie on a real disk are also killed from outside (storage_kill_test.ts).
 */
import assert from "node:assert/strict";
import { type Key, packKey } from "../../store/model/key.ts";
import type { DiskCommit, Storage } from "../../store/model/ports.ts";
import { pointRange, prefixRange, type Range, WHOLE } from "../../store/model/range.ts";
import { type Row, rowBytes } from "../../store/model/row.ts";

/** One disk under test. */
export interface StorageSubject {
  readonly name: string;
  /** A blank disk; `reopen` closes the storage and opens what is on its disk. */
  open(): Promise<
    { storage: Storage; reopen?: (storage: Storage) => Promise<Storage>; discard(): Promise<void> }
  >;
  /** The largest value it is asked to take. */
  readonly valueBytesMax: number;
}

type Opened = Awaited<ReturnType<StorageSubject["open"]>>;

/** A row with plain defaults. */
export function row(
  key: Key,
  position: number,
  value: Uint8Array | string | null,
  more: Partial<Row> = {},
): Row {
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  return { key, position, value: bytes, clock: position * 10, replica: 3, known: 1, expiresAtMs: 0, ...more };
}

/** A step from what differs from an empty one. */
export const step = (
  rows: Row[],
  drop: Key[] = [],
  records: [string, Uint8Array | null][] = [],
): DiskCommit => ({
  rows,
  drop,
  records: new Map(records),
});

const key = (...parts: (string | number)[]): Key => packKey(parts);
const names = (rows: readonly Row[]) => rows.map((r) => r.key);
const positions = (rows: readonly Row[]) => rows.map((r) => r.position);
const plain = (r: Row | undefined) => r === undefined ? undefined : { ...r, value: r.value && [...r.value] };
const same = (a: Row | undefined, b: Row | undefined) => assert.deepEqual(plain(a), plain(b));

/** Declares the suite for one subject. */
export function storageContract(subject: StorageSubject): void {
  const test = (name: string, body: (opened: Opened) => Promise<void>) =>
    Deno.test(`storage: ${subject.name}: ${name}`, async () => {
      const opened = await subject.open();
      try {
        await body(opened);
      } finally {
        await opened.discard();
      }
    });
  readsAndWrites(test);
  scans(test);
  journals(test);
  sizes(test, subject);
  longKeys(test);
  reopening(test);
}

type Declare = (name: string, body: (opened: Opened) => Promise<void>) => void;

function readsAndWrites(test: Declare): void {
  test("a blank disk has nothing", async ({ storage }) => {
    assert.equal((await storage.load()).size, 0);
    assert.equal(await storage.get(key("a")), undefined);
    assert.deepEqual(await storage.scan(WHOLE), []);
    assert.deepEqual(await storage.journal(0, 1e15, 10), []);
    assert.equal(await storage.bytes(), 0);
  });

  test("a row comes back with all its fields (S1)", async ({ storage }) => {
    const full: Row = {
      key: packKey(["a", new Uint8Array([0, 255, 0]), -1.5, 7n, true, "ü\u0000"]),
      position: 2 ** 52 + 1,
      value: new Uint8Array([0, 1, 255]),
      clock: Number.MAX_SAFE_INTEGER,
      replica: 2 ** 24 - 1,
      known: 3,
      expiresAtMs: 1_900_000_000_123,
    };
    await storage.commit(step([full]));
    same(await storage.get(full.key), full);
    same((await storage.scan(pointRange(full.key)))[0], full);
    same((await storage.journal(full.position - 1, full.position, 1))[0], full);
  });

  test("an empty value is no tombstone", async ({ storage }) => {
    await storage.commit(step([row(key("empty"), 1, new Uint8Array()), row(key("gone"), 2, null)]));
    same(await storage.get(key("empty")), row(key("empty"), 1, new Uint8Array()));
    same(await storage.get(key("gone")), row(key("gone"), 2, null));
  });

  test("getMany answers in the order asked, with holes and repeats", async ({ storage }) => {
    await storage.commit(step(Array.from({ length: 40 }, (_, i) => row(key(i), i + 1, `v${i}`))));
    const asked = [39, 99, 0, 0, ...Array.from({ length: 30 }, (_, i) => i)];
    const got = await storage.getMany(asked.map((i) => key(i)));
    assert.deepEqual(got.map((r) => r?.position), asked.map((i) => i === 99 ? undefined : i + 1));
    assert.deepEqual(await storage.getMany([]), []);
  });

  test("getMany ends with the row that brings it to a number of bytes", async ({ storage }) => {
    const rows = Array.from(
      { length: 9 },
      (_, i) => row(key("m", i), i + 1, "v".repeat(i === 4 ? 9_000 : 10)),
    );
    await storage.commit(step(rows));
    const asked = [...rows.map(({ key }) => key).toSpliced(2, 0, key("none"))];
    const small = key("m", 0).length + 10;
    for (
      const [bytesMax, count] of [[1, 1], [2 * small, 2], [2 * small + 1, 4], [5 * small, 6], [
        1e6,
        10,
      ]] as const
    ) {
      const got = await storage.getMany(asked, bytesMax);
      assert.equal(got.length, count, `${bytesMax} bytes`);
      same(got.at(-1), (await storage.getMany(asked))[count - 1]);
    }
  });

  test("drops leave no trace, and come before rows (memory.ts M2)", async ({ storage }) => {
    await storage.commit(step([row(key("a"), 1, "a"), row(key("b"), 2, "b")]));
    await storage.commit(step([row(key("b"), 3, "b2")], [key("a"), key("b"), key("never")]));
    assert.equal(await storage.get(key("a")), undefined);
    assert.deepEqual(positions(await storage.journal(0, 100, 100)), [3]);
    assert.deepEqual(names(await storage.scan(WHOLE)), [key("b")]);
  });

  test("the last of two rows with one key in a step stays", async ({ storage }) => {
    await storage.commit(
      step([row(key("a"), 1, "first"), row(key("b"), 2, "b"), row(key("a"), 3, "second")]),
    );
    same(await storage.get(key("a")), row(key("a"), 3, "second"));
    assert.deepEqual(positions(await storage.journal(0, 100, 100)), [2, 3]);
    assert.equal(await storage.bytes(), key("a").length + 6 + key("b").length + 1);
  });

  test("records are set, replaced and removed by null", async ({ storage }) => {
    const [one, two, none] = [new Uint8Array([1]), new Uint8Array([2, 2]), new Uint8Array()];
    await storage.commit(step([], [], [["cursor", one], ["mark/ü", two], ["empty", none]]));
    await storage.commit(step([], [], [["cursor", two], ["mark/ü", null], ["absent", null]]));
    const records = await storage.load();
    assert.deepEqual([...records.keys()].sort(), ["cursor", "empty"]);
    assert.deepEqual([...records.get("cursor") ?? []], [2, 2]);
    assert.deepEqual([...records.get("empty") ?? [9]], []);
  });

  test("an empty step is fine", async ({ storage }) => {
    await storage.commit(step([]));
    assert.equal(await storage.bytes(), 0);
  });
}

function scans(test: Declare): void {
  test("a scan and the journal end with the row that brings them to a number of bytes", async ({ storage }) => {
    const long = "v".repeat(70_000); // in pieces, where the engine has such
    const rows = Array.from(
      { length: 8 },
      (_, i) => row(key("b", i), i + 1, [null, "", "short", long][i % 4] ?? null),
    );
    await storage.commit(step(rows));
    for (const bytesMax of [1, 20, 60, 70_000, 70_050, 140_000, 150_000, Infinity]) {
      const upTo = (all: readonly Row[]) => {
        let bytes = 0;
        return all.filter((one) => bytes < bytesMax && ((bytes += rowBytes(one)), true));
      };
      for (const reverse of [false, true]) {
        for (const limit of [3, 100]) {
          const got = await storage.scan(WHOLE, { reverse, limit, bytesMax });
          const expected = upTo(reverse ? rows.toReversed() : rows).slice(0, limit);
          assert.equal(got.length, expected.length, `${bytesMax} bytes`);
          got.forEach((one, i) => same(one, expected[i]));
        }
      }
      const journal = await storage.journal(2, 100, 100, bytesMax);
      assert.deepEqual(positions(journal), positions(upTo(rows.slice(2))), `${bytesMax} bytes`);
    }
  });

  test("scan respects bounds, limit and direction, tombstones included", async ({ storage }) => {
    const rows = Array.from({ length: 30 }, (_, i) => row(key("t", i), i + 1, i % 3 === 0 ? null : `v${i}`));
    await storage.commit(
      step([...rows, row(key("s", 1), 50, "s"), row(key("u"), 51, "u"), row(key("t"), 52, "t")]),
    );
    const range = prefixRange(key("t"));
    const all = names(rows);
    const cases: [Range, number | undefined, boolean, Key[]][] = [
      [range, undefined, false, all],
      [range, undefined, true, all.toReversed()],
      [range, 7, false, all.slice(0, 7)],
      [range, 7, true, all.toReversed().slice(0, 7)],
      [range, 0, false, []],
      [{ start: key("t", 5), end: key("t", 9) }, undefined, false, all.slice(5, 9)],
      [{ start: key("t", 5), end: key("t", 9) }, undefined, true, all.slice(5, 9).toReversed()],
      [{ start: key("t", 9), end: key("t", 5) }, undefined, false, []],
      [pointRange(key("t", 4)), undefined, false, [key("t", 4)]],
      [pointRange(key("t", 99)), undefined, true, []],
      [pointRange(key("t")), undefined, false, [key("t")]],
    ];
    for (const [bounds, limit, reverse, expected] of cases) {
      const options = limit === undefined ? { reverse } : { reverse, limit };
      assert.deepEqual(names(await storage.scan(bounds, options)), expected);
    }
    assert.equal((await storage.scan(WHOLE)).length, 33);
  });

  test("keys sort by bytes, and a key that is another's prefix comes first", async ({ storage }) => {
    const keys = [
      key("a"),
      key("a", 1),
      key("a\u0000"),
      key("a\u0000", "x"),
      key("ab"),
      key("é"),
      key("\u{10000}"),
    ];
    await storage.commit(step(keys.toReversed().map((k, i) => row(k, i + 1, "x"))));
    assert.deepEqual(names(await storage.scan(WHOLE)), keys);
    assert.deepEqual(names(await storage.scan(prefixRange(key("a")))), [key("a", 1)]);
    assert.deepEqual(names(await storage.scan(prefixRange(key("a\u0000")))), [key("a\u0000", "x")]);
  });
}

function journals(test: Declare): void {
  test("the journal gives each row once, at its newest position", async ({ storage }) => {
    await storage.commit(step(Array.from({ length: 10 }, (_, i) => row(key(i), i + 1, "1"))));
    await storage.commit(step([row(key(2), 11, "2"), row(key(7), 12, null)]));
    await storage.commit(step([row(key(2), 13, "3")], [key(4)]));
    const all = await storage.journal(0, 13, 100);
    assert.deepEqual(positions(all), [1, 2, 4, 6, 7, 9, 10, 12, 13]);
    same(all.at(-1), row(key(2), 13, "3"));
    assert.deepEqual(positions(await storage.journal(6, 12, 100)), [7, 9, 10, 12]);
    assert.deepEqual(positions(await storage.journal(6, 12, 2)), [7, 9]);
    assert.deepEqual(positions(await storage.journal(13, 20, 10)), []);
    assert.deepEqual(positions(await storage.journal(9, Infinity, Infinity)), [10, 12, 13]);
  });

  test("positions far apart stay in order", async ({ storage }) => {
    const at = [1, 255, 256, 65_536, 2 ** 31, 2 ** 32, 2 ** 40 + 1, 2 ** 53 - 1];
    await storage.commit(step(at.map((p) => row(key(p), p, "x", { clock: p }))));
    assert.deepEqual(positions(await storage.journal(0, 2 ** 53 - 1, 100)), at);
    assert.deepEqual(positions(await storage.journal(256, 2 ** 32, 100)), [65_536, 2 ** 31, 2 ** 32]);
  });
}

function sizes(test: Declare, subject: StorageSubject): void {
  test("bytes counts keys and values, through overwrites, tombstones and drops", async ({ storage }) => {
    const [a, b] = [key("a"), key("bb")];
    await storage.commit(step([row(a, 1, new Uint8Array(1000)), row(b, 2, new Uint8Array(10))]));
    assert.equal(await storage.bytes(), a.length + 1000 + b.length + 10);
    await storage.commit(step([row(a, 3, new Uint8Array(5)), row(b, 4, null)]));
    assert.equal(await storage.bytes(), a.length + 5 + b.length);
    await storage.commit(step([], [a, b]));
    assert.equal(await storage.bytes(), 0);
  });

  test("big values, long keys and a big step are kept whole", async ({ storage, reopen }) => {
    const big = new Uint8Array(subject.valueBytesMax).map((_, i) => i * 31 + (i >> 8));
    const long = packKey(["x".repeat(2040)]);
    const longer = packKey(["x".repeat(2040), "y"]);
    const rows = [row(key("big"), 1, big), row(long, 2, "long"), row(longer, 3, "longer")];
    for (let i = 0; i < 2500; i++) rows.push(row(key("n", i), i + 4, `n${i}`));
    await storage.commit(step(rows));
    const after = reopen === undefined ? storage : await reopen(storage);
    same(await after.get(key("big")), row(key("big"), 1, big));
    same(await after.get(long), row(long, 2, "long"));
    same(await after.get(longer), row(longer, 3, "longer"));
    assert.deepEqual(names(await after.scan({ start: long, end: KEY_ABOVE })), [long, longer]);
    assert.equal((await after.scan(prefixRange(key("n")))).length, 2500);
    assert.equal((await after.journal(0, 1e9, 1e9)).length, 2503);
    await after.commit(step([row(key("big"), 5000, big.slice(0, 70_000)), row(long, 5001, null)]));
    same(await after.get(key("big")), row(key("big"), 5000, big.slice(0, 70_000)));
    assert.deepEqual(positions(await after.journal(4000, 1e9, 9)), [5000, 5001]);
  });
}

function longKeys(test: Declare): void {
  test("long keys that begin alike come in their order, both ways, as far as they are asked for (denokv_layout.ts L1)", async ({ storage }) => {
    const keys = Array.from({ length: 40 }, (_, i) => packKey(["x".repeat(2040), i]));
    const before = packKey(["x".repeat(2039)]), behind = packKey(["x".repeat(2041)]);
    const all = [before, ...keys, behind];
    await storage.commit(step(all.toReversed().map((each, i) => row(each, i + 1, `v${i}`))));
    assert.deepEqual(names(await storage.scan(WHOLE)), all);
    assert.deepEqual(names(await storage.scan(WHOLE, { reverse: true })), all.toReversed());
    assert.deepEqual(names(await storage.scan(WHOLE, { limit: 9 })), all.slice(0, 9));
    const range = { start: keys[5] ?? before, end: keys[9] ?? behind };
    assert.deepEqual(names(await storage.scan(range, { reverse: true })), keys.slice(5, 9).toReversed());
  });
}

const KEY_ABOVE = packKey(["y"]);

function reopening(test: Declare): void {
  test("what was committed is there after a reopen (S2)", async ({ storage, reopen }) => {
    if (reopen === undefined) return;
    const rows = Array.from({ length: 50 }, (_, i) => row(key("r", i), i + 1, i % 7 === 0 ? null : `v${i}`));
    await storage.commit(step(rows, [], [["cursor", new Uint8Array([7])]]));
    await storage.commit(step([row(key("r", 3), 60, "again")], [key("r", 4)]));
    const bytes = await storage.bytes();
    const again = await reopen(storage);
    assert.equal(await again.bytes(), bytes);
    assert.deepEqual([...(await again.load()).get("cursor") ?? []], [7]);
    assert.equal((await again.scan(WHOLE)).length, 49);
    same((await again.journal(50, 100, 9))[0], row(key("r", 3), 60, "again"));
  });
}
