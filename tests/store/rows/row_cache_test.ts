/** What is kept of rows that were read or written lately (store/rows/row_cache.ts). */
import assert from "node:assert/strict";
import type { Key } from "../../../store/model/key.ts";
import { ROW_CACHE_BYTES, ROW_CACHE_ROW_BYTES_MAX } from "../../../store/model/limits.ts";
import type { Row } from "../../../store/model/row.ts";
import { RowCache } from "../../../store/rows/row_cache.ts";

const rowOf = (name: string, bytes: number): Row => ({
  key: name as Key,
  value: new Uint8Array(bytes),
  clock: 1,
  replica: 1,
  known: 0,
  expiresAtMs: 0,
  position: 1,
});

Deno.test("a row that is too large to be kept takes the place of the one that was, and of an absence (C1)", () => {
  const cache = new RowCache(), key = "k" as Key;
  for (const before of [rowOf("k", 10), null]) {
    cache.put(key, before);
    assert.equal(cache.get(key), before);
    cache.put(key, rowOf("k", ROW_CACHE_ROW_BYTES_MAX));
    assert.equal(cache.get(key), undefined, "it is not known here what the disk has");
  }
  cache.put(key, rowOf("k", 10));
  const half = Math.ceil(ROW_CACHE_BYTES / 2 / ROW_CACHE_ROW_BYTES_MAX); // So many, and it is of the older generation.
  for (let i = 0; i <= half; i++) cache.put(`${i}` as Key, rowOf(`${i}`, ROW_CACHE_ROW_BYTES_MAX - 100));
  cache.put(key, rowOf("k", ROW_CACHE_ROW_BYTES_MAX));
  assert.equal(cache.get(key), undefined, "nor does the older generation");
  const largest = rowOf("k", ROW_CACHE_ROW_BYTES_MAX - 1);
  cache.put(key, largest);
  assert.equal(cache.get(key), largest);
});

Deno.test("what is kept of rows is bounded by bytes, and what is read stays (C2)", () => {
  const cache = new RowCache(), bytes = ROW_CACHE_ROW_BYTES_MAX - 100;
  const used = rowOf("used", bytes);
  cache.put(used.key, used);
  const names = Array.from({ length: 4 * Math.ceil(ROW_CACHE_BYTES / bytes) }, (_, i) => `row ${i}`);
  for (const name of names) {
    cache.put(name as Key, rowOf(name, bytes));
    assert.equal(cache.get(used.key), used);
  }
  const kept = names.filter((name) => cache.get(name as Key) !== undefined);
  assert.ok(kept.length * bytes <= ROW_CACHE_BYTES, `${kept.length} rows`);
  assert.ok(kept.includes(names.at(-1) ?? ""));
});
