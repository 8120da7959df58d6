/** Rates and pauses (functions/queues/token_bucket.ts, settings.ts). */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { attemptsMax, pauseMs } from "../../../functions/queues/settings.ts";
import { TokenBucket } from "../../../functions/queues/token_bucket.ts";

Deno.test("in no time more is taken than the rate and the bucket's fill (TB1)", () => {
  const rates = fc.constantFrom(0.5, 1, 7, 100, 1_000);
  const waits = fc.array(fc.tuple(fc.nat(700), fc.integer({ min: 1, max: 50 })), { maxLength: 60 });
  fc.assert(fc.property(rates, waits, (perSecond, steps) => {
    const bucket = new TokenBucket(perSecond, 0), taken: [number, number][] = [];
    let nowMs = 0;
    for (const [waitMs, most] of steps) {
      nowMs += waitMs;
      const count = Math.min(most, bucket.available(nowMs));
      bucket.take(count, nowMs);
      taken.push([nowMs, count]);
    }
    for (const [i, [fromMs]] of taken.entries()) {
      let sum = 0;
      for (const [atMs, count] of taken.slice(i)) {
        sum += count;
        const most = perSecond * (atMs - fromMs) / 1_000 + Math.max(1, perSecond);
        assert.ok(sum <= most + 1e-6, `${sum} in ${atMs - fromMs} ms at ${perSecond} a second`);
      }
    }
  }));
});

Deno.test("a token is there when it was said to be", () => {
  fc.assert(
    fc.property(fc.double({ min: 0.01, max: 5_000, noNaN: true }), fc.nat(10_000), (perSecond, nowMs) => {
      const bucket = new TokenBucket(perSecond, 0);
      bucket.take(bucket.available(nowMs), nowMs);
      const atMs = bucket.nextMs(nowMs);
      assert.ok(bucket.available(atMs) >= 1);
      assert.ok(atMs - nowMs <= 1_000 / perSecond + 1);
    }),
  );
});

Deno.test("a queue without a rate has no end of tokens, and gets one when it is given one", () => {
  const bucket = new TokenBucket(Infinity, 0);
  bucket.take(1_000, 0);
  assert.equal(bucket.available(0), Infinity);
  bucket.configure(5, 100);
  assert.equal(bucket.available(100), 1);
  assert.equal(bucket.available(5_000), 5);
  bucket.configure(2, 5_000);
  assert.equal(bucket.available(5_000), 2);
});

Deno.test("pauses grow to the longest, are drawn from their second half, or are listed", () => {
  const grow = { minMs: 100, maxMs: 1_000 };
  const pauses = (unit: number) =>
    [1, 2, 3, 4, 5, 90].map((attempt) => pauseMs(grow, { attempt, own: null, unit }));
  assert.deepEqual(pauses(0), [100, 200, 400, 800, 1_000, 1_000]);
  assert.deepEqual(pauses(1), [50, 100, 200, 400, 500, 500]);
  const listed = (own: number[] | null) =>
    [1, 2, 3, 9].map((attempt) => pauseMs({ eachMs: [5, 6] }, { attempt, own, unit: 0.3 }));
  assert.deepEqual(listed(null), [5, 6, 6, 6]);
  assert.deepEqual(listed([1, 2, 3]), [1, 2, 3, 3]);
  assert.deepEqual(listed([]), [0, 0, 0, 0]);
  assert.deepEqual([attemptsMax({ maxAttempts: 5 }, null), attemptsMax({ maxAttempts: 5 }, [1, 2])], [5, 3]);
});
