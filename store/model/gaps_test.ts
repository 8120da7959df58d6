import { strict as assert } from "node:assert";
import fc from "fast-check";
import { type Gap, Gaps, jumpedFrom } from "./gaps.ts";
import { GAPS_MAX } from "./limits.ts";

const random = (byte: number) => ({ bytes: (length: number) => new Uint8Array(length).fill(byte) });
const least = random(0), most = random(255);

Deno.test("gaps hold what lies between two positions, and neither of these (JG1)", () => {
  const gaps = new Gaps().and({ from: 10, to: 20, clock: 1 }).and({ from: 25, to: 40, clock: 2 });
  const clocks = [9, 10, 11, 19, 20, 22, 25, 26, 39, 40, 41].map((at) => gaps.around(at)?.clock ?? 0);
  assert.deepEqual(clocks, [0, 0, 1, 1, 0, 0, 0, 2, 2, 0, 0]);
  assert.equal(gaps.last?.to, 40);
  assert.equal(new Gaps().around(1), undefined);
});

Deno.test("gaps are read as they were written", () => {
  const gap = fc.tuple(fc.maxSafeNat(), fc.maxSafeNat(), fc.maxSafeNat())
    .map(([from, to, clock]): Gap => ({ from, to, clock }));
  fc.assert(fc.property(fc.array(gap), (all) => {
    assert.deepEqual(Gaps.decode(new Gaps(all).encode()).all, all);
  }));
});

Deno.test("gaps of the oldest starts are forgotten", () => {
  let gaps = new Gaps();
  for (let i = 0; i <= GAPS_MAX; i++) gaps = gaps.and({ from: 10 * i, to: 10 * i + 9, clock: i });
  assert.deepEqual([gaps.all.length, gaps.around(5), gaps.around(15)?.clock], [GAPS_MAX, undefined, 1]);
});

Deno.test("a jump is wider than anything that is written, at random, and leaves room for very many more", () => {
  for (const head of [0, 812, 2 ** 40]) {
    const [low, high] = [jumpedFrom(head, least) - head, jumpedFrom(head, most) - head];
    assert.ok(low > 2 ** 35 && high > 1.99 * low && high < 2 ** 37 + 1, `${low} to ${high}`);
  }
  let head = 0;
  for (let i = 0; i < 500_000; i++) {
    const to = jumpedFrom(head, most);
    assert.ok(to > head && to <= Number.MAX_SAFE_INTEGER);
    head = to;
  }
  assert.ok(jumpedFrom(head, least) - head > 2 ** 20);
});
