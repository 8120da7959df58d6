import { strict as assert } from "node:assert";
import * as limits from "../../../functions/client/limits.ts";
import { type ListedSite, SiteChoice } from "../../../functions/client/site_choice.ts";

const SITES: readonly ListedSite[] = [
  { id: "edge-1", url: "a", tier: "edge" },
  { id: "edge-2", url: "b", tier: "edge" },
  { id: "core-1", url: "c", tier: "core" },
  { id: "cloud", url: "d", tier: "root" },
];
const W = limits.WINDOW_MS;

/** One measured round trip of each site, in each of some windows. */
function measured(
  choice: SiteChoice,
  fromMs: number,
  windows: number,
  rttMs: Record<string, number>,
): number {
  let nowMs = fromMs;
  for (let i = 0; i < windows; i++, nowMs += W) {
    choice.choose(nowMs);
    for (const [url, ms] of Object.entries(rttMs)) choice.answered(url, ms);
  }
  return nowMs;
}

Deno.test("a client begins where it was told, and stays where nothing is clearly nearer (C1)", () => {
  const rows: [rttMs: Record<string, number>, ends: string, why: string | null][] = [
    [{ a: 10, b: 9 }, "a", null],
    [{ a: 10, b: 6 }, "a", null], // nearer by a third, and by four milliseconds only
    [{ a: 100, b: 80 }, "a", null], // by twenty, and by a fifth only
    [{ a: 100, b: 60 }, "b", "nearer"],
    [{ b: 1 }, "a", null], // nothing is known of its own
    [{ a: 20, c: 12 }, "a", null], // a core has to be nearer by more
    [{ a: 20, c: 11 }, "c", "nearer"],
    [{ a: 20, d: 11 }, "a", null],
  ];
  for (const [rttMs, ends, why] of rows) {
    const choice = new SiteChoice(SITES, 0);
    const nowMs = measured(choice, 0, 1, rttMs);
    const { site, moved } = choice.choose(nowMs);
    assert.deepEqual([site.url, moved], [ends, why], JSON.stringify(rttMs));
  }
});

Deno.test("the first requests, which are slow, move nobody (C1)", () => {
  const choice = new SiteChoice(SITES, 0);
  choice.answered("a", 300);
  choice.answered("b", 10);
  assert.equal(choice.choose(W - 1).site.url, "a");
  choice.answered("a", 12);
  assert.equal(choice.choose(W + 1).site.url, "a");
});

Deno.test("one slow window moves nobody, and who has moved stays (C1)", () => {
  const choice = new SiteChoice(SITES, 0);
  let nowMs = measured(choice, 0, 3, { a: 10, b: 20 });
  nowMs = measured(choice, nowMs, 1, { a: 400, b: 20 });
  assert.equal(choice.choose(nowMs).site.url, "a", "it was one window");
  nowMs = measured(choice, nowMs, 2, { a: 400, b: 20 });
  assert.equal(choice.current.url, "b");
  const movedMs = nowMs;
  nowMs = measured(choice, nowMs, 3, { a: 2, b: 60 });
  assert(nowMs - movedMs < limits.STAY_MS);
  assert.equal(choice.current.url, "b", "it has just moved");
  nowMs = measured(choice, nowMs, 6, { a: 2, b: 60 });
  assert.equal(choice.current.url, "a");
});

Deno.test("a dead site is left at once for the nearest, and tried later each time (C2)", () => {
  const choice = new SiteChoice(SITES, 0);
  measured(choice, 0, 1, { a: 10, b: 40, c: 25 });
  choice.failed("a", 100);
  assert.deepEqual([choice.choose(100).site.url, choice.choose(100).moved], ["c", null]);
  choice.failed("c", 100);
  const { site, moved } = choice.choose(100);
  assert.deepEqual([site.url, moved], ["b", "dead"]);
  choice.failed("b", 100);
  assert.equal(choice.choose(100).site.url, "d", "nothing is known of it, and it is not known to be dead");
  choice.failed("d", 100);
  assert.equal(choice.waitMs(100), limits.FAILED_SITE_MS);
  for (const [failures, waitMs] of [[1, 1_000], [2, 2_000], [3, 4_000], [9, limits.DEAD_MS_MAX]] as const) {
    const fresh = new SiteChoice(SITES.slice(0, 1), 0);
    for (let i = 0; i <= failures; i++) fresh.failed("a", 0);
    assert.equal(fresh.waitMs(0), waitMs);
    assert.equal(fresh.choose(0).site.url, "a", "there is no other");
  }
  choice.answered("a", 12);
  assert.equal(choice.choose(200).site.url, "a");
});

Deno.test("a site that goes away is left, and is no dead one", () => {
  const choice = new SiteChoice(SITES, 0);
  measured(choice, 0, 1, { a: 10, b: 12 });
  choice.away("a", 0);
  assert.deepEqual([choice.choose(0).site.url, choice.sites[0]?.state], ["b", "away"]);
  choice.answered("a", 10);
  assert.equal(choice.choose(1).site.url, "b", "it is back, and about as near");
});

Deno.test("who tries another time goes elsewhere, and around again when all were tried", () => {
  const choice = new SiteChoice(SITES, 0);
  measured(choice, 0, 1, { a: 10, b: 12, c: 14, d: 16 });
  const tried = new Set<string>();
  const went = SITES.map(() => {
    const { url } = choice.choose(0, tried).site;
    tried.add(url);
    return url;
  });
  assert.deepEqual(went, ["a", "b", "c", "d"]);
  assert.equal(choice.choose(0, tried).site.url, "a");
});

Deno.test("only sites without a round trip are probed, after the first window the nearest alone (C3)", () => {
  const many = Array.from({ length: 8 }, (_, at) => ({ id: `${at}`, url: `u${at}`, tier: "edge" as const }));
  const choice = new SiteChoice(many, 0);
  choice.answered("u0", 10);
  assert.deepEqual(choice.probes(1), ["u1", "u2", "u3", "u4", "u5", "u6", "u7"]);
  assert.deepEqual(choice.probes(2), [], "once in a window");
  many.forEach(({ url }, at) => choice.answered(url, 10 + at));
  choice.probes(W + 1); // the order is new: all
  many.forEach(({ url }, at) => choice.answered(url, 10 + at));
  choice.answered("u0", 10);
  assert.deepEqual(choice.probes(2 * W + 1), ["u0", "u1", "u2"]);
  choice.answered("u0", 10);
  assert.deepEqual(choice.probes(3 * W + 1, "u1"), ["u0", "u2"], "one is asked for something");
  const asked = [4, 5, 6, 7, 8].map((window) => {
    choice.choose(window * W + 1);
    ["u0", "u1", "u2"].forEach((url, at) => choice.answered(url, at === 2 ? 40 : 10 + at));
    return choice.probes(window * W + 2).length;
  });
  assert.deepEqual(asked, [0, 0, 0, 5, 1], "another one is among the nearest: all, then that one");
});

Deno.test("sites that come and go: the one where the client is stays", () => {
  const choice = new SiteChoice(SITES.slice(0, 2), 0);
  choice.list([{ id: "edge-9", url: "z", tier: "edge" }]);
  assert.deepEqual(choice.sites.map(({ url }) => url), ["z", "a"]);
  choice.failed("a", 0);
  assert.equal(choice.choose(0).site.url, "z");
});
