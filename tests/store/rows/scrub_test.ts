/** The pace at which all rows of a disk are read again (store/rows/scrub.ts). */
import assert from "node:assert/strict";
import type { Key } from "../../../store/model/key.ts";
import {
  SCRUB_BEGIN_MS,
  SCRUB_BYTES_PER_MS,
  SCRUB_ROWS,
  SCRUB_STEP_MS,
} from "../../../store/model/limits.ts";
import { DamagedRows, type ScanOptions } from "../../../store/model/ports.ts";
import type { Range } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import { Scrub } from "../../../store/rows/scrub.ts";

const ROWS = 1_000;
const keyOf = (i: number): Key => `${i}`.padStart(6, "0") as Key;

/** A disk with rows of so many bytes, on a clock that jumps to whatever is due next. */
function disk(bytes: number, damaged: ReadonlySet<Key> = new Set()) {
  const rows = Array.from({ length: ROWS }, (_, i): Row => ({
    key: keyOf(i),
    value: new Uint8Array(bytes),
    position: i + 1,
    ...{ clock: 1, replica: 1, known: 0, expiresAtMs: 0 },
  }));
  const pages: { atMs: number; rows: number }[] = [];
  const met = new Set<Key>();
  let nowMs = 0;
  let due: { atMs: number; callback: () => void } | null = null;
  const scan = ({ start, end }: Range, options: ScanOptions = {}): Promise<Row[]> => {
    const { limit = 0 } = options;
    assert.equal(limit, SCRUB_ROWS, "so many are read at a time");
    const found = rows.filter(({ key }) => key >= start && key < end).slice(0, limit);
    const broken = found.filter(({ key }) => damaged.has(key)).map(({ key }) => key);
    pages.push({ atMs: nowMs, rows: found.length });
    for (const { key } of found) if (broken.length === 0 || broken.includes(key)) met.add(key);
    return broken.length > 0 ? Promise.reject(new DamagedRows(broken)) : Promise.resolve(found);
  };
  const clock = {
    after: (ms: number, callback: () => void) => {
      due = { atMs: nowMs + ms, callback };
      return () => due = null;
    },
  };
  const scrub = new Scrub({ storage: { scan }, clock, failed: (error) => assert.fail(`${error}`) });
  const next = async (): Promise<void> => {
    assert.ok(due !== null);
    const { atMs, callback }: { atMs: number; callback: () => void } = due;
    due = null;
    nowMs = atMs;
    callback();
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  return { scrub, pages, met, next, nowMs: () => nowMs, isDue: () => due !== null };
}

Deno.test("all rows are read, some at a time, no faster than so many bytes in a time (X1)", async () => {
  const bytes = 2 * SCRUB_BYTES_PER_MS * SCRUB_STEP_MS / SCRUB_ROWS; // a page takes twice the least pause
  const { scrub, pages, met, next, nowMs, isDue } = disk(bytes);
  await next();
  assert.equal(nowMs(), SCRUB_BEGIN_MS);
  while (scrub.rounds === 0) await next();
  assert.equal(met.size, ROWS);
  for (const [i, page] of pages.entries()) {
    const before = pages[i - 1];
    if (before === undefined) continue;
    const mostBytes = (page.atMs - before.atMs) * SCRUB_BYTES_PER_MS;
    assert.ok(before.rows * bytes <= mostBytes, `${before.rows} rows in ${page.atMs - before.atMs} ms`);
  }
  const firstRound = pages.length;
  while (scrub.rounds === 1) await next();
  assert.equal(pages.length, 2 * firstRound, "it begins again");
  scrub.close();
  assert.equal(isDue(), false);
});

Deno.test("small rows are read with a pause between pages, and what is damaged does not stop it (X1)", async () => {
  const damaged = new Set([keyOf(3), keyOf(300), keyOf(301)]);
  const { scrub, pages, met, next } = disk(1, damaged);
  while (scrub.rounds === 0) await next();
  assert.deepEqual([...damaged].filter((key) => !met.has(key)), []);
  for (const [i, page] of pages.entries()) {
    assert.ok(i === 0 || page.atMs - (pages[i - 1]?.atMs ?? 0) >= SCRUB_STEP_MS);
  }
  scrub.close();
});
