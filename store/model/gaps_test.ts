import { strict as assert } from "node:assert";
import fc from "fast-check";
import { type Gap, Gaps, jumpedFrom } from "./gaps.ts";
import { GAPS_MAX } from "./limits.ts";

const random = (byte: number) => ({ bytes: (length: number) => new Uint8Array(length).fill(byte) });
const least = random(0), most = random(255);

/** One that a process made then. */
const gap = (from: number, to: number, clock = 1, atMs = 0): Gap => ({ from, to, clock, atMs });

Deno.test("gaps hold what lies between two positions, and neither of these (JG1)", () => {
  const gaps = new Gaps().and(gap(10, 20, 1)).and(gap(25, 40, 2)).and(gap(40, 50, 3)).and(gap(60, 62, 4));
  const at = [0, 9, 10, 11, 19, 20, 22, 25, 26, 39, 40, 41, 49, 50, 55, 60, 61, 62, 63];
  const clocks = at.map((position) => gaps.around(position)?.clock ?? 0);
  assert.deepEqual(clocks, [0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 0, 3, 3, 0, 0, 0, 4, 0, 0]);
  assert.equal(gaps.last?.to, 62);
  assert.equal(new Gaps().around(1), undefined);
  assert.equal(new Gaps().and(gap(5, 5)).around(5), undefined, "one that could not jump");
});

Deno.test("gaps are read as they were written", () => {
  const any = fc.tuple(fc.maxSafeNat(), fc.maxSafeNat(), fc.maxSafeNat(), fc.maxSafeNat())
    .map(([from, to, clock, atMs]): Gap => ({ from, to, clock, atMs }));
  fc.assert(fc.property(fc.array(any), (all) => {
    assert.deepEqual(Gaps.decode(new Gaps(all).encode()).all, all);
  }));
});

const DAY_MS = 86_400_000;

/** Starts at these times, each at the end of the ten rows of the one before. */
const started = (gaps: Gaps, timesMs: readonly number[]): Gaps =>
  timesMs.reduce((all, atMs) => {
    const from = (all.last?.to ?? 0) + 10;
    return all.and(gap(from, from + 1_000, 1, atMs));
  }, gaps);
const times = (from: number, count: number, everyMs: number) =>
  Array.from({ length: count }, (_, i) => from + i * everyMs);

Deno.test("of more gaps than are remembered, the newer half is, and of the older the one after the least time is not (JG3)", () => {
  const usual = started(new Gaps(), times(0, 100, DAY_MS));
  // A copy of the last of these days is put back, and its site crashes over and over.
  const older = started(usual, [100 * DAY_MS]), { from } = older.last ?? gap(0, 0);
  const looped = started(older, times(100 * DAY_MS + 5_000, 20 * GAPS_MAX, 5_000));
  assert.equal(looped.all.length, GAPS_MAX);
  assert.ok(looped.around(from + 1) !== undefined);
  assert.deepEqual(looped.all.slice(0, 100), usual.all, "nor is any of the usual ones forgotten");
  const last = times(100 * DAY_MS + 5_000 * (19.5 * GAPS_MAX + 1), GAPS_MAX / 2, 5_000);
  assert.deepEqual(looped.all.slice(-GAPS_MAX / 2).map(({ atMs }) => atMs), last);
  const sorted = looped.all.toSorted((a, b) => a.from - b.from);
  assert.deepEqual(looped.all, sorted);
});

Deno.test("of gaps that all were made after the same time the first is remembered", () => {
  const { all } = started(new Gaps(), times(0, 2 * GAPS_MAX, DAY_MS));
  assert.deepEqual([all.length, all[0]?.atMs], [GAPS_MAX, 0]);
});

Deno.test("a jump is wider than anything that is written, at random, and leaves room for very many more (JG4)", () => {
  for (const head of [0, 812, 2 ** 40]) {
    const [low, high] = [jumpedFrom(head, least) - head, jumpedFrom(head, most) - head];
    assert.ok(low > 2 ** 34.9 && high > 1.99 * low && high < 2 ** 36 + 1, `${low} to ${high}`);
  }
  let head = 0;
  for (let i = 0; i < 500_000; i++) {
    const to = jumpedFrom(head, most);
    assert.ok(to > head);
    head = to;
  }
  assert.ok(jumpedFrom(head, least) - head > 2 ** 20);
  for (let i = 0; i < 500_000; i++) head = jumpedFrom(head, most);
  assert.ok(head < 2 ** 52, "half of all positions are for rows");
  for (const end of [2 ** 52, 2 ** 52 + 812]) assert.equal(jumpedFrom(end, most), end);
});
