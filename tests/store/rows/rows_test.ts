/** Reads of the rows of a site whose bytes are bounded. */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { HybridClock } from "../../../store/model/clock.ts";
import { Wall } from "../../../store/model/wall.ts";
import { packKey } from "../../../store/model/key.ts";
import type { ScanOptions } from "../../../store/model/ports.ts";
import { prefixRange, type Range } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import { Rows } from "../../../store/rows/rows.ts";

/** Counts the rows that it gave. */
class CountingStorage extends MemoryStorage {
  scanned = 0;

  override async scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    const rows = await super.scan(range, options);
    this.scanned += rows.length;
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
