import { strict as assert } from "node:assert";
import { Traffic } from "./traffic.ts";

Deno.test("rates and percentiles are of the last seconds, totals since the start (T2)", () => {
  let nowMs = 10_000;
  const traffic = new Traffic(() => nowMs);
  for (let second = 0; second < 10; second++) {
    for (let i = 0; i < 100; i++) {
      const tookMs = i < 95 ? 2 : 300;
      nowMs = 10_000 + second * 1_000 + i * 10;
      traffic.answered({ app: "shop", version: i < 50 ? "1" : "2" }, nowMs - tookMs, i % 10 === 0);
    }
  }
  traffic.answered({ app: "other", version: "1" }, nowMs - 1, false);
  const { all, apps } = traffic.snapshot();
  assert.deepEqual(apps.map(({ app }) => app), ["other", "shop"]);
  const shop = apps[1];
  assert(shop !== undefined);
  assert.deepEqual([shop.requests, shop.errors, all.requests], [1_000, 100, 1_001]);
  assert(Math.abs(shop.requestsPerS - 100) < 3, `${shop.requestsPerS}`);
  assert(Math.abs(shop.errorsPerS - 10) < 1, `${shop.errorsPerS}`);
  assert(Math.abs((shop.p50Ms ?? 0) / 2 - 1) < 0.1, `${shop.p50Ms}`);
  assert(Math.abs((shop.p99Ms ?? 0) / 300 - 1) < 0.1, `${shop.p99Ms}`);
  assert.deepEqual(
    shop.versions.map(({ version, requests, p99Ms }) => [version, requests, (p99Ms ?? 0) > 100]),
    [
      ["1", 500, false],
      ["2", 500, true],
    ],
  );
  nowMs += 20_000;
  const later = traffic.snapshot().apps[1];
  assert.deepEqual([later?.requestsPerS, later?.p50Ms, later?.requests], [0, null, 1_000]);
  nowMs += 700_000;
  assert.deepEqual(traffic.snapshot().apps, []);
});

Deno.test("latencies beyond the scale count at its ends", () => {
  const traffic = new Traffic(() => 1_000_000);
  for (const tookMs of [0, -1, NaN, 1e9]) {
    traffic.answered({ app: "shop", version: "1" }, 1_000_000 - tookMs, false);
  }
  const { p50Ms, p99Ms } = traffic.snapshot().all;
  assert(p50Ms !== null && p50Ms < 0.1 && p99Ms !== null && p99Ms > 50_000, `${p50Ms} ${p99Ms}`);
});

Deno.test("sessions are counted by where they moved from", () => {
  const traffic = new Traffic();
  traffic.arrived("new", undefined);
  traffic.arrived("same", 3);
  traffic.arrived("carry", 4);
  traffic.arrived("carry", 4);
  traffic.arrived("nothing", 5);
  const { moved } = traffic.snapshot();
  assert.deepEqual(moved, [
    { replica: 4, nothing: 0, carry: 2, wait: 0 },
    { replica: 5, nothing: 1, carry: 0, wait: 0 },
  ]);
});
