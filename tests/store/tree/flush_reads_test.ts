/** What children that come back together are told (store/tree/flush_reads.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { FlushReads } from "../../../store/tree/flush_reads.ts";
import type { Key } from "../../../store/model/key.ts";
import { Least } from "../../../store/model/least.ts";
import { STEP_BYTES, STEP_ROWS } from "../../../store/model/limits.ts";
import { type Position, type Row, rowBytes } from "../../../store/model/row.ts";

const ROWS = 5_000;
/** Child i covers the keys that i divides. */
const DIVISORS = [1, 2, 7, 5_001] as const;

async function setUp({ count = ROWS, valueBytes = 10 } = {}) {
  const storage = new MemoryStorage();
  let walks = 0;
  /** What was read since the last turn, and the most of it. */
  const since = { rows: 0, bytes: 0 }, most = { rows: 0, bytes: 0 };
  const journal = storage.journal.bind(storage), scan = storage.scan.bind(storage);
  const read = (rows: Row[]): Row[] => {
    since.rows += rows.length;
    since.bytes += rows.reduce((sum, row) => sum + rowBytes(row), 0);
    most.rows = Math.max(most.rows, since.rows);
    most.bytes = Math.max(most.bytes, since.bytes);
    return rows;
  };
  storage.journal = async (after, upTo, limit, bytesMax) => {
    walks++;
    return read(await journal(after, upTo, limit, bytesMax));
  };
  storage.scan = async (range, options) => read(await scan(range, options));
  const turn = async () => {
    for (let i = 0; i < 20; i++) await null; // longer than a read
    since.rows = since.bytes = 0;
  };
  const rows = Array.from({ length: count }, (_, i): Row => ({
    key: `${i + 1}` as Key,
    value: new Uint8Array(valueBytes),
    clock: i,
    replica: 1,
    known: 0,
    expiresAtMs: 0,
    position: i + 1,
  }));
  await storage.commit({ rows, drop: [], records: new Map() });
  const core = new Core({
    site: "root",
    parent: null,
    tier: "root",
    url: "",
    linkAddress: "",
    capacityBytes: 1e9,
  }, {
    clock: { nowMs: () => 0, steadyMs: () => 0, after: () => () => {}, turn },
    random: { bytes: (length) => new Uint8Array(length) },
    storage,
    network: { send: () => Promise.resolve() },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
  });
  const mark = {
    replica: 1,
    head: count,
    clock: 0,
    down: [],
    stable: [],
    reach: [],
    watermark: 0,
    floor: 0,
    isFull: false,
    partial: false,
  };
  const reads = new FlushReads(core, mark);
  const children = DIVISORS.map((_, i) => {
    const child = new Child(`edge-${i}`, 0, { stables: new Least(), floors: new Least() });
    child.scanFrom = 100 * i;
    return child;
  });
  const covers = (child: Child, key: Key) => Number(key) % (DIVISORS[children.indexOf(child)] ?? 1) === 0;
  const subscribers = (key: Key) => children.filter((child) => covers(child, key));
  const missed = async (child: Child): Promise<Key[]> => {
    const has = (key: Key) => covers(child, key);
    const chunks = await reads.changesSince(child, child.scanFrom ?? 0, { keys: [], has });
    return chunks.flatMap((chunk) => chunk.rows.map(({ key }) => key));
  };
  const expected = (child: Child): Key[] =>
    rows.filter(({ key, position }) => position > (child.scanFrom as Position) && covers(child, key))
      .map(({ key }) => key);
  return { reads, children, subscribers, missed, expected, walks: () => walks, most };
}

Deno.test("children that come back together get what each has missed, in one walk", async () => {
  const { reads, children, subscribers, missed, expected, walks } = await setUp();
  await reads.lookBack(children, subscribers);
  const once = walks();
  for (const child of children) assert.deepEqual(await missed(child), expected(child));
  assert.equal(walks(), once);
});

Deno.test("a child that missed more than there is memory for gets it all the same", async () => {
  const { reads, children, subscribers, missed, expected, walks } = await setUp();
  await reads.lookBack(children, subscribers, 50_000);
  const together = walks();
  for (const child of children) assert.deepEqual(await missed(child), expected(child));
  // The first covers everything: it alone takes a walk of its own.
  assert.equal(walks(), 2 * together);
});

Deno.test("a child that said hello again since gets what it lacks by that", async () => {
  const { reads, children, subscribers, missed, expected } = await setUp();
  await reads.lookBack(children, subscribers);
  const [first] = children;
  assert.ok(first !== undefined);
  first.connection++;
  first.scanFrom = 7;
  assert.deepEqual(await missed(first), expected(first));
});

Deno.test("what a child has missed, and the digest of a range, are read in steps of few rows and few bytes (R3)", async () => {
  const rowsOf = [
    { count: ROWS, valueBytes: 10 },
    { count: 60, valueBytes: 100_000 },
    { count: 9, valueBytes: STEP_BYTES / 8 - 1 }, // with the key eight of them have just so many
  ];
  for (const [i, rows] of rowsOf.entries()) {
    const { children: [first], missed, most: walked } = await setUp(rows);
    assert.ok(first !== undefined);
    first.scanFrom = 0;
    assert.equal((await missed(first)).length, rows.count);
    const { reads, most: digested } = await setUp(rows);
    assert.equal((await reads.digest({ start: "" as Key, end: "~" as Key })).rows, rows.count);
    for (const most of [walked, digested]) {
      if (i === 0) assert.equal(most.rows, STEP_ROWS);
      else assert.ok(most.bytes >= STEP_BYTES && most.bytes < STEP_BYTES + 100_002, `${most.bytes} bytes`);
    }
  }
});
