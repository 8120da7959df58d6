/** Versions that are drawn without asking the site's clock (store/model/clock_share.ts). */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { HybridClock } from "../../../store/model/clock.ts";
import { CLOCK_SHARE_STEP, CLOCK_SHARES, ClockShare, ClockShares } from "../../../store/model/clock_share.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import type { Wall } from "../../../store/model/wall.ts";

const share = fc.integer({ min: 0, max: CLOCK_SHARES - 1 });

Deno.test("no two of a site draw one value, nor does its own clock, wherever time goes (CS1, CS2, C3)", () => {
  const step = fc.record({
    who: fc.integer({ min: 0, max: 3 }),
    ms: fc.oneof(fc.constant(0), fc.integer({ min: -50, max: 50 })),
    seen: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60_000 * CLOCK_TICKS_PER_MS })),
  });
  const shares = fc.uniqueArray(share, { minLength: 3, maxLength: 3 });
  fc.assert(fc.property(shares, fc.array(step, { maxLength: 60 }), (shares, steps) => {
    let nowMs = CLOCK_EPOCH_MS + 10_000;
    const own = new HybridClock({ datesMs: () => nowMs } as Wall);
    const others = shares.map((share) => new ClockShare(share, () => nowMs));
    const last = [0, 0, 0, 0], drawn = new Set<number>();
    for (const { who, ms, seen } of steps) {
      nowMs += ms;
      const other = others[who];
      if (other === undefined) own.merge(seen);
      const clock = other === undefined ? own.tick() : other.after(seen);
      assert.ok(!drawn.has(clock), `${clock} was drawn before`);
      assert.ok(clock > (last[who] ?? 0) && clock > seen);
      assert.ok(clock >= (nowMs - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS);
      if (seen === 0 && ms >= 0 && other !== undefined) {
        const least = Math.max(last[who] ?? 0, (nowMs - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS);
        assert.ok(clock <= least + CLOCK_SHARE_STEP, "not far ahead");
      }
      drawn.add(last[who] = clock);
    }
  }));
});

Deno.test("a share is one of those that there are", () => {
  for (const wrong of [-1, 0.5, CLOCK_SHARES, NaN]) {
    assert.throws(() => new ClockShare(wrong, Date.now), RangeError);
  }
});

Deno.test("each share is had by one at a time, and given again after all others (CS3)", () => {
  const shares = new ClockShares(CLOCK_SHARES - 1);
  const taken = Array.from({ length: CLOCK_SHARES }, () => shares.take());
  assert.deepEqual(taken.slice(0, 2), [CLOCK_SHARES - 1, 0]);
  assert.equal(new Set(taken).size, CLOCK_SHARES);
  assert.equal(shares.take(), null);
  shares.give(7);
  shares.give(5);
  assert.deepEqual([shares.take(), shares.take(), shares.take()], [5, 7, null]);
  const free = new ClockShares(0);
  assert.equal(free.take(), 0);
  free.give(0);
  assert.equal(free.take(), 1, "the one that was given back comes last");
});
