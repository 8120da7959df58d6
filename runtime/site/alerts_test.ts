import { strict as assert } from "node:assert";
import { alertsOf, DiskSpace, type Signs } from "./alerts.ts";

const NOW_MS = 1_000_000;
const PARENT = { id: "core", connected: true, acked: 0, feedLagMs: 5 };

const CHILD = { id: "edge", connected: true, ranges: 1, stableLagMs: 300 };

const CALM_WARDS = {
  owners: ["edge-3"],
  next: null,
  isClosed: false,
  isAlone: false,
  silent: [],
  heldBytes: 0,
};

const calm: Signs = {
  fault: null,
  stateful: { parked: 0, stalled: 0 },
  replica: {
    site: "here",
    clocksAhead: [],
    clockDoubt: null,
    parent: PARENT,
    pending: 3,
    pendingBytes: 60,
    children: [CHILD],
    adopting: [],
    watched: [],
    ownersMissing: null,
    wards: CALM_WARDS,
    damaged: [],
    counters: {},
  },
  damagedFolders: [],
  lostFolders: [],
  diskFree: 0.5,
  away: [],
  nowMs: NOW_MS,
};

const withReplica = (change: Partial<Signs["replica"]>): Signs => ({
  ...calm,
  replica: { ...calm.replica, ...change },
});
const watched = (standing: "unknown" | "alive" | "suspected" | "dead") => ({
  site: "edge-2",
  standing,
  rttMs: null,
  silentMs: 2_100,
});
const lostChild = withReplica({ children: [{ ...CHILD, connected: false, stableLagMs: 10_001 }] });
const lostParent = withReplica({ parent: { ...PARENT, connected: false, feedLagMs: 10_001 } });

Deno.test("alerts name what is to be looked at, and nothing when all is well (W1)", () => {
  const rows: [Signs, string[]][] = [
    [calm, []],
    [{ ...calm, fault: new Error("no space") }, ["disk_failed"]],
    [{ ...calm, diskFree: 0.049 }, ["disk_low"]],
    [{ ...calm, diskFree: 0.05 }, []],
    [{ ...calm, diskFree: null }, []],
    [withReplica({ counters: { rows_damaged: 2 } }), ["disk_damaged"]],
    [withReplica({ counters: { rows_damaged: 2 }, damaged: ['["a","app","x"]'] }), [
      "disk_damaged",
      "disk_damaged",
    ]],
    [{ ...calm, damagedFolders: [{ folder: "homes", rows: 1 }] }, ["disk_damaged"]],
    [{ ...calm, lostFolders: [{ folder: "store.lost", why: "it went back" }] }, ["disk_lost"]],
    [withReplica({ clocksAhead: ["edge-1", "core"] }), ["clock_ahead", "clock_ahead"]],
    [withReplica({ clockDoubt: { aheadMs: 3_600_000, forMs: 5_000 } }), []],
    [withReplica({ clockDoubt: { aheadMs: -3_600_000, forMs: 5_001 } }), ["clock_doubted"]],
    [lostParent, ["parent_away"]],
    [withReplica({ parent: { ...PARENT, connected: false, feedLagMs: 10_000 } }), []],
    [withReplica({ parent: { ...PARENT, feedLagMs: 10_001 } }), []],
    [withReplica({ parent: null }), []],
    [withReplica({ parent: { ...PARENT, feedLagMs: 60_000 } }), []],
    [withReplica({ parent: { ...PARENT, feedLagMs: 60_001 } }), ["lag"]],
    [withReplica({ parent: { ...PARENT, feedLagMs: null } }), []],
    [lostChild, ["child_away"]],
    [withReplica({ children: [{ ...CHILD, connected: false, stableLagMs: 10_000 }] }), []],
    [withReplica({ children: [{ ...CHILD, stableLagMs: 90_000 }] }), []],
    [withReplica({ children: [{ ...CHILD, connected: false, stableLagMs: null }] }), []],
    [withReplica({ adopting: [{ child: "edge-4", waitsFor: ["core-1"], forMs: 10_000 }] }), []],
    [withReplica({ adopting: [{ child: "edge-4", waitsFor: ["core-1"], forMs: 10_001 }] }), [
      "adoption_waits",
    ]],
    [withReplica({ pending: 100_001 }), ["pending"]],
    [withReplica({ pendingBytes: 64 * 1024 * 1024 + 1 }), ["pending"]],
    [{ ...calm, away: [{ id: "edge-1", untilMs: NOW_MS + 1, near: true }] }, ["site_away"]],
    [{ ...calm, away: [{ id: "edge-1", untilMs: NOW_MS, near: true }] }, ["site_overdue"]],
    [{ ...calm, away: [{ id: "edge-9", untilMs: NOW_MS + 1, near: false }] }, []],
    [{ ...lostChild, away: [{ id: "edge", untilMs: NOW_MS + 1, near: true }] }, ["site_away"]],
    [{ ...lostChild, away: [{ id: "edge-9", untilMs: NOW_MS + 1, near: false }] }, ["child_away"]],
    [{ ...lostParent, away: [{ id: "core", untilMs: NOW_MS + 1, near: true }] }, ["site_away"]],
    [{ ...lostParent, away: [{ id: "core", untilMs: NOW_MS - 1, near: true }] }, [
      "parent_away",
      "site_overdue",
    ]],
    [withReplica({ watched: [watched("alive"), watched("unknown")] }), []],
    [withReplica({ watched: [watched("suspected")] }), ["site_suspected"]],
    [withReplica({ watched: [watched("dead")], ownersMissing: "too few" }), ["site_dead", "owners_missing"]],
    [{
      ...withReplica({ watched: [watched("suspected")] }),
      away: [{ id: "edge-2", untilMs: NOW_MS + 1, near: false }],
    }, []],
  ];
  const silent = [{ site: "edge-3", why: "no answer" }];
  rows.push([withReplica({ wards: { ...CALM_WARDS, silent } }), ["owners_silent"]]);
  rows.push([withReplica({ wards: { ...CALM_WARDS, silent, isAlone: true } }), [
    "owners_silent",
    "owners_without",
  ]]);
  rows.push([{ ...calm, stateful: { parked: 2, stalled: 0 } }, ["stateful_parked"]]);
  rows.push([{ ...calm, stateful: { parked: 0, stalled: 1 } }, ["stateful_stalled"]]);
  for (const [signs, codes] of rows) assert.deepEqual(alertsOf(signs).map(({ code }) => code), codes);
});

Deno.test("an alert names the site that it is about (W2)", () => {
  const about = (signs: Signs) => alertsOf(signs).map(({ code, site }) => `${code} at ${site}`);
  assert.deepEqual(about(withReplica({ watched: [watched("dead")], clocksAhead: ["edge-1"] })), [
    "clock_ahead at edge-1",
    "site_dead at edge-2",
  ]);
  assert.deepEqual(about(lostChild), ["child_away at edge"]);
  assert.deepEqual(about(lostParent), ["parent_away at here"], "which is without its parent");
  assert.deepEqual(about({ ...calm, diskFree: 0 }), ["disk_low at here"]);
});

Deno.test("an alert of a site that waits to be taken in names those who did not answer", () => {
  const said = (waitsFor: string[]) =>
    alertsOf(withReplica({ adopting: [{ child: "edge-4", waitsFor, forMs: 15_000 }] })).map(({ detail }) =>
      detail
    );
  assert.match(
    said(["core-1", "edge-7"])[0] ?? "",
    /^site edge-4 has waited for 15 s .*core-1, edge-7 may have/,
  );
  assert.match(said([])[0] ?? "", /not all that it had shown has come here from the root/);
});

Deno.test("disk space is a part of the whole, and unknown where there is no such folder", () => {
  const free = new DiskSpace(".").free();
  assert.ok(free !== null && free >= 0 && free <= 1);
  assert.equal(new DiskSpace("./no such folder").free(), null);
});
