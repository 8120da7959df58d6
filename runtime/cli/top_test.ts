import { strict as assert } from "node:assert";
import { frame } from "./top.ts";
import { topLines, topViewSchema } from "./top_table.ts";

const rates = { requestsPerS: 12.34, errorsPerS: 0, p50Ms: 1.5, p99Ms: 250 };

function site(id: string, parent: string | null, more: Record<string, unknown> = {}) {
  return {
    id,
    parent,
    tier: parent === null ? "root" : "edge",
    reachable: true,
    ageMs: 1,
    lagMs: 1500,
    status: {
      parent: parent === null ? null : { connected: true, rttMs: 20 },
      pending: 2,
      pendingBytes: 2048,
      apps: [{ name: "shop", version: "0123456789abcdef", isolates: 1 }],
    },
    rates: {
      all: rates,
      apps: [{ app: "shop", ...rates }],
      arrivals: { new: 3, nothing: 2, carry: 1, wait: 0 },
      process: { rssBytes: 100 * 1024 * 1024, cpu: 0.25 },
    },
    ...more,
  };
}

Deno.test("top shows the tree of sites and the apps over all of them", () => {
  const view = topViewSchema.parse({
    atMs: 0,
    by: "cloud",
    sites: [
      site("cloud", null),
      site("core-1", "cloud"),
      site("core-2", "cloud", { reachable: false, ageMs: 4_200 }),
      site("edge-1", "core-1", {
        ...{ reachable: false, ageMs: null, status: null, rates: null },
        alerts: [{ code: "site_dead", detail: "silent for 4 s", by: "core-1" }],
      }),
      site("edge-2", "lost-1"),
    ],
  });
  assert.deepEqual(topLines(view), [
    "5 sites, 2 do not answer  ·  00:00:00 UTC  ·  seen from cloud",
    "",
    "SITE        TIER  UPLINK        LAG      PENDING  REQ/S  ERR/S     P50     P99  NEW  NOTHING  CARRY  WAIT  CPU   MEMORY",
    "cloud       root  -           1.5 s  2 (2.0 KiB)   12.3    0.0  1.5 ms  250 ms    3        2      1     0  25%  100 MiB",
    "├ core-1    edge  20 ms       1.5 s  2 (2.0 KiB)   12.3    0.0  1.5 ms  250 ms    3        2      1     0  25%  100 MiB",
    "│ └ edge-1  edge  no word",
    "└ core-2    edge  away 4.2 s",
    "edge-2      edge  20 ms       1.5 s  2 (2.0 KiB)   12.3    0.0  1.5 ms  250 ms    3        2      1     0  25%  100 MiB",
    "",
    "APP   VERSION   SITES  ISOLATES  REQ/S  ERR/S     P50     P99",
    "shop  01234567      3         3   37.0    0.0  1.5 ms  250 ms",
    "",
    "ALERT AT  CODE       WHAT",
    "edge-1    site_dead  silent for 4 s (seen from core-1)",
  ]);
});

Deno.test("top shows who holds what is pending where a site has owners", () => {
  const owned = (id: string, wards: unknown) => {
    const one = site(id, "cloud");
    return { ...one, status: { ...one.status, f: 1, wards } };
  };
  const lines = topLines(topViewSchema.parse({
    atMs: 0,
    by: "cloud",
    sites: [
      site("cloud", null),
      owned("edge-1", { owners: ["edge-2"], next: ["edge-3"] }),
      owned("edge-2", { owners: ["edge-1"], next: null }),
      site("edge-3", "cloud", { reachable: false }),
    ],
  }));
  assert.deepEqual(lines.slice(2, 7).map((line) => line.replace(/.*(MEMORY|MiB)/, "").trim()), [
    "OWNERS",
    "-",
    "edge-2 → edge-3",
    "edge-1",
    "└ edge-3  edge  away 1 ms",
  ]);
});

Deno.test("top shows both versions while a part of the sessions gets another one", () => {
  const part = { ...rates, requestsPerS: 2 };
  const next = { version: "fedcba9876543210", weight: 25, isolates: 2 };
  const one = site("cloud", null);
  const view = topViewSchema.parse({
    atMs: 0,
    by: "cloud",
    sites: [{
      ...one,
      status: { ...one.status, apps: [{ name: "shop", version: "0123456789abcdef", isolates: 1, next }] },
      rates: {
        ...one.rates,
        apps: [{ app: "shop", ...rates, versions: [{ version: next.version, ...part }] }],
      },
    }],
  });
  assert.deepEqual(topLines(view).slice(5), [
    "APP        VERSION   SITES  ISOLATES  REQ/S  ERR/S     P50     P99",
    "shop       01234567      1         3   12.3    0.0  1.5 ms  250 ms",
    "  current  01234567                1    0.0    0.0       -       -",
    "  25%      fedcba98                2    2.0    0.0  1.5 ms  250 ms",
  ]);
});

Deno.test("a frame is cut to the terminal, and says that it is", () => {
  const size = { columns: () => 5, rows: () => 3 };
  const text = frame(["one", "two and more", "three", "four"], size);
  assert.equal(text, "\x1b[?2026h\x1b[Hone\x1b[K\ntwo a\x1b[K\n… 2 m\x1b[K\x1b[J\x1b[?2026l");
  assert(frame(["ä".repeat(9)], size).includes(`H${"ä".repeat(5)}\x1b`));
});
