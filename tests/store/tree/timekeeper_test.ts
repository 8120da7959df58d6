/** Whose clock a site goes by where its own leaps, and what it tells its neighbours (store/tree/timekeeper.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { encodeJson, siteKey } from "../../../store/members/topology.ts";
import {
  CLOCK_AHEAD_MS_MAX,
  CLOCK_DOUBT_MS,
  CLOCK_LEAP_MS_MAX,
  CLOCK_TELL_MS,
} from "../../../store/model/limits.ts";
import { clockAt } from "../../../store/model/clock.ts";
import { Timekeeper } from "../../../store/tree/timekeeper.ts";

const NOON_MS = Date.UTC(2026, 5, 1, 12), HOUR_MS = 3_600_000;

interface Where {
  /** Depth in the tree: 0 is the root. */
  readonly depth: number;
  readonly children?: readonly (readonly [string, boolean])[];
}

/** A site whose wall clock is wrong by as much as it is told. */
function site({ depth, children = [] }: Where) {
  const at = { ms: 0, wrongMs: 0 };
  const notes: string[] = [], told: [string, number][] = [];
  const core = new Core(
    { site: "x", parent: depth === 0 ? null : "p", tier: "", url: "", linkAddress: "", capacityBytes: 1 },
    {
      clock: {
        nowMs: () => NOON_MS + at.ms + at.wrongMs,
        steadyMs: () => at.ms,
        after: () => () => {},
        turn: () => Promise.resolve(),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: () => {},
      note: (event) => void notes.push(event),
    },
  );
  core.setPath(Array.from({ length: depth }, (_, i) => `above ${i}`));
  for (const [id] of children) core.rows.put(core.own(siteKey(id), encodeJson({ id, parent: "x" })));
  const timekeeper = new Timekeeper(core, {
    tell: (ms) => void told.push(["up", ms - NOON_MS - at.ms]),
    tellBelow: (ms) => void told.push(["down", ms - NOON_MS - at.ms]),
    children: () => children.map(([id, connected]) => ({ id, connected }) as Child),
  });
  /** Time passes, in which it looks a few times a second; each second `each` happens. */
  const pass = (ms: number, each: () => void = () => {}) => {
    for (const untilMs = at.ms + ms; at.ms < untilMs;) {
      at.ms += 250;
      if (at.ms % 1_000 === 0) each();
      timekeeper.look();
    }
  };
  /** How far what is believed is from the time. */
  const offMs = () => core.wall.datesMs() - NOON_MS - at.ms;
  const rightMs = () => NOON_MS + at.ms;
  pass(1_000);
  told.length = 0;
  return { at, core, timekeeper, notes, told, pass, offMs, rightMs };
}

Deno.test("a root believes a leap that most of its connected children say of their own clocks (K2)", () => {
  const rows:
    readonly (readonly [string, Record<string, number | null>, Record<string, boolean>, boolean])[] = [
      ["all of them", { a: 0, b: 0 }, { a: true, b: true }, true],
      ["two of three", { a: 0, b: 0, c: null }, { a: true, b: true, c: true }, true],
      ["one of two", { a: 0, b: null }, { a: true, b: true }, false],
      ["one of two, of which the other is away", { a: 0, b: null }, { a: true, b: false }, true],
      ["one that is away", { a: 0, b: null, c: null }, { a: false, b: true, c: true }, false],
      ["nobody", { a: null, b: null }, { a: true, b: true }, false],
      ["almost the same", { a: CLOCK_AHEAD_MS_MAX, b: -CLOCK_AHEAD_MS_MAX }, { a: true, b: true }, true],
      [
        "something else",
        { a: CLOCK_AHEAD_MS_MAX + 1, b: -CLOCK_AHEAD_MS_MAX - 1 },
        { a: true, b: true },
        false,
      ],
    ];
  for (const [says, clocks, links, isBelieved] of rows) {
    const all = site({ depth: 0, children: Object.entries(links) });
    all.at.wrongMs = 8 * HOUR_MS;
    all.pass(1_000, () => {
      for (const [id, offMs] of Object.entries(clocks)) {
        if (offMs !== null) all.timekeeper.told(id, all.rightMs() + 8 * HOUR_MS + offMs);
      }
    });
    assert.equal(Math.round(all.offMs() / HOUR_MS), isBelieved ? 8 : 0, says);
  }
});

Deno.test("a child whose wall clock says what the root believes, rather than what the root's says, confirms nothing (K2)", () => {
  for (
    const [wrongMs, saysMs, offMs] of [[-57_000, 0, 0], [50_000, 0, 0], [50_000, 40_000, 50_000]] as const
  ) {
    const all = site({ depth: 0, children: [["a", true]] });
    all.at.wrongMs = wrongMs;
    all.pass(1_000, () => all.timekeeper.told("a", all.rightMs() + saysMs));
    assert.equal(all.offMs(), offMs, `${wrongMs} ${saysMs}`);
  }
});

Deno.test("what a child said counts for as long as it says it again, and only while the root's own clock is doubted (K2)", () => {
  const late = site({ depth: 0, children: [["a", true]] });
  late.timekeeper.told("a", late.rightMs() + 8 * HOUR_MS);
  late.pass(1_000);
  late.at.wrongMs = 8 * HOUR_MS;
  late.pass(1_000);
  assert.equal(late.offMs(), 0, "it was said before");
  const old = site({ depth: 0, children: [["a", true], ["b", true]] });
  old.at.wrongMs = 8 * HOUR_MS;
  old.pass(250);
  old.timekeeper.told("a", old.rightMs() + 8 * HOUR_MS);
  old.pass(3 * CLOCK_TELL_MS + 1_000);
  old.timekeeper.told("b", old.rightMs() + 8 * HOUR_MS);
  old.pass(250);
  assert.equal(old.offMs(), 0, "it was said too long ago");
  old.timekeeper.told("a", old.rightMs() + 8 * HOUR_MS);
  old.pass(250);
  assert.equal(old.offMs(), 8 * HOUR_MS);
});

Deno.test("a root that refuses most of its children for their clocks takes the least of what they agree on (K4)", () => {
  /** By child: what it dates, and what its wall clock says, ahead of the root's; null: nothing. */
  type Says = Readonly<Record<string, readonly [number | null, number | null] | null>>;
  const rows: readonly (readonly [string, Says, number])[] = [
    ["both", { a: [HOUR_MS, null], b: [HOUR_MS + 2_000, null] }, HOUR_MS],
    ["one of two", { a: [HOUR_MS, null], b: null }, 0],
    ["two that do not agree", { a: [HOUR_MS, null], b: [3 * HOUR_MS, null] }, 0],
    ["two of three", { a: [HOUR_MS, null], b: [HOUR_MS, null], c: [9 * HOUR_MS, null] }, HOUR_MS],
    [
      "what they date is ahead of their own clocks",
      { a: [9 * HOUR_MS, HOUR_MS], b: [9 * HOUR_MS, HOUR_MS] },
      HOUR_MS,
    ],
    ["one of two, and the other, which has the time from here, says the same", {
      a: [HOUR_MS, null],
      b: [null, HOUR_MS],
    }, HOUR_MS],
    ["only such that have the time from here", { a: [null, HOUR_MS], b: [null, HOUR_MS] }, 0],
    ["none that would be refused", { a: [CLOCK_AHEAD_MS_MAX, null], b: [CLOCK_AHEAD_MS_MAX, null] }, 0],
  ];
  for (const [says, children, offMs] of rows) {
    const all = site({ depth: 0, children: Object.keys(children).map((id) => [id, true] as const) });
    all.at.wrongMs = -24 * HOUR_MS; // its battery is empty
    const say = () => {
      for (const [id, said] of Object.entries(children)) {
        if (said === null) continue;
        if (said[0] !== null) all.timekeeper.refused(id, all.rightMs() + said[0]);
        if (said[1] !== null) all.timekeeper.told(id, all.rightMs() + said[1]);
      }
    };
    all.pass(CLOCK_DOUBT_MS - 1_000, say);
    assert.equal(all.offMs(), 0, `${says}: not before it has been doubted for long`);
    all.pass(3_000, say);
    assert.equal(Math.round(all.offMs() / 60_000), Math.round(offMs / 60_000), says);
    if (offMs > 0) assert.equal(all.core.counters["clock_taken"], 1, says);
  }
});

Deno.test("a root that believes its clock has one voice against its children (K4)", () => {
  /** By child: what it is refused for, and what its wall clock says, ahead of the root's; null: nothing. */
  type Says = Readonly<Record<string, readonly [number | null, number | null]>>;
  const refused = [HOUR_MS, null] as const,
    other = [null, HOUR_MS + 1_000] as const,
    none = [null, null] as const;
  const rows: readonly (readonly [string, Says, boolean])[] = [
    ["one of one", { a: refused }, false],
    ["two of two", { a: refused, b: refused }, true],
    ["two of three", { a: refused, b: refused, c: none }, false],
    ["two, and one that has the time from here", { a: refused, b: refused, c: other }, true],
    ["one, and one that has the time from here", { a: refused, b: other }, true],
    ["only such that have the time from here", { a: other, b: other, c: other }, false],
    ["two that do not agree", { a: refused, b: [3 * HOUR_MS, null] }, false],
    ["what they date is ahead of their own clocks", { a: [HOUR_MS, 0], b: [HOUR_MS, 0] }, false],
  ];
  for (const [says, children, isTaken] of rows) {
    const all = site({ depth: 0, children: Object.keys(children).map((id) => [id, true] as const) });
    const say = () => {
      for (const [id, [dates, wallMs]] of Object.entries(children)) {
        if (dates !== null) all.timekeeper.refused(id, all.rightMs() + dates);
        if (wallMs !== null) all.timekeeper.told(id, all.rightMs() + wallMs);
      }
    };
    all.pass(1_000, say);
    all.pass(4 * CLOCK_TELL_MS);
    assert.equal(all.offMs(), 0, `${says}: not for a while`);
    all.pass(CLOCK_DOUBT_MS, say);
    assert.equal(all.offMs(), 0, `${says}: it began anew`);
    all.pass(2_000, say);
    assert.equal(Math.round(all.offMs() / 60_000), isTaken ? 60 : 0, says);
    assert.equal(all.core.counters["clock_taken"], isTaken ? 1 : undefined, says);
  }
});

Deno.test("a child whose wall clock is ahead counts as if it dated what the root refuses a session for (K5)", () => {
  const rows: readonly (readonly [string, Record<string, number | null>, readonly number[], number])[] = [
    ["both children's are", { a: HOUR_MS, b: HOUR_MS + 1_000 }, [HOUR_MS - 5_000], HOUR_MS - 5_000],
    ["no session is refused", { a: HOUR_MS, b: HOUR_MS }, [], 0],
    ["one of two children's is", { a: HOUR_MS, b: null }, [HOUR_MS], 0],
    ["no child's is", { a: null, b: null }, [HOUR_MS], 0],
    ["the children's say less", { a: HOUR_MS, b: HOUR_MS }, [9 * HOUR_MS], HOUR_MS],
    ["the children's do not agree", { a: HOUR_MS, b: 3 * HOUR_MS }, [9 * HOUR_MS], 0],
    ["several sessions are refused", { a: HOUR_MS, b: HOUR_MS }, [HOUR_MS, 600_000, HOUR_MS], 600_000],
  ];
  for (const [says, walls, sessions, offMs] of rows) {
    const all = site({ depth: 0, children: Object.keys(walls).map((id) => [id, true] as const) });
    all.at.wrongMs = -24 * HOUR_MS;
    const dated = sessions.map((aheadMs) => all.rightMs() + aheadMs);
    const say = () => {
      for (const [id, wallMs] of Object.entries(walls)) {
        if (wallMs !== null) all.timekeeper.told(id, all.rightMs() + wallMs);
      }
    };
    const ask = () => dated.forEach((ms) => all.core.wall.isTooFar(ms) && all.timekeeper.refusedSession(ms));
    all.pass(CLOCK_DOUBT_MS - 1_000, () => [say(), ask()]);
    assert.equal(all.offMs(), 0, `${says}: not before it has been doubted for long`);
    all.pass(1_500, () => [say(), ask()]);
    assert.equal(Math.round(all.offMs() / 60_000), Math.round(offMs / 60_000), says);
  }
});

Deno.test("that a root refused a session counts for as long as a child's word, and nowhere else (K5)", () => {
  for (
    const [depth, waitMs, isTaken] of [[0, 1_000, true], [0, 3 * CLOCK_TELL_MS + 1_000, false], [1, 0, false]]
  ) {
    const all = site({ depth: Number(depth), children: [["a", true]] });
    all.at.wrongMs = -24 * HOUR_MS;
    all.pass(CLOCK_DOUBT_MS + 1_000);
    all.timekeeper.refusedSession(all.rightMs() + HOUR_MS);
    all.pass(Number(waitMs));
    all.pass(1_000, () => all.timekeeper.told("a", all.rightMs() + HOUR_MS));
    assert.equal(Math.round(all.offMs() / HOUR_MS), isTaken ? 1 : 0, `${depth} ${waitMs}`);
  }
});

Deno.test("a child that is away does not count among those whom a root refuses (K4)", () => {
  for (const connected of [false, true]) {
    const all = site({ depth: 0, children: [["a", true], ["b", connected]] });
    all.at.wrongMs = -24 * HOUR_MS;
    all.pass(CLOCK_DOUBT_MS + 3_000, () => all.timekeeper.refused("a", all.rightMs() + HOUR_MS));
    assert.equal(Math.round(all.offMs() / HOUR_MS), connected ? 0 : 1);
  }
});

Deno.test("a site tells its neighbours of its wall clock, again and again, where they would not hear of it otherwise (K1, K3)", () => {
  const AHEAD = 8 * HOUR_MS, BACK = -8 * HOUR_MS;
  const rows: readonly (readonly [string, number, number, number, readonly (readonly [string, number])[]])[] =
    [
      ["a right clock", 1, 0, 0, []],
      ["a child of the root, ahead", 1, AHEAD, 0, [["up", AHEAD]]],
      ["one further down, ahead", 2, AHEAD, 0, []],
      ["the root, ahead", 0, AHEAD, 0, []],
      ["a child of the root, behind", 1, BACK, 0, [["up", BACK], ["down", BACK]]],
      ["one further down, behind", 2, BACK, 0, [["up", BACK], ["down", BACK]]],
      ["one that has dated ahead", 2, 0, HOUR_MS, [["up", 0], ["down", 0]]],
      ["one that has dated ahead, and whose clock is further ahead", 2, AHEAD, HOUR_MS, [["up", 0], [
        "down",
        0,
      ]]],
      ["the same, below the root", 1, AHEAD, HOUR_MS, [["up", AHEAD], ["down", 0]]],
      ["one that has dated a little ahead", 2, 0, CLOCK_LEAP_MS_MAX - 2_000, []],
    ];
  for (const [says, depth, wrongMs, datedMs, expected] of rows) {
    const all = site({ depth, children: [["a", true]] });
    all.at.wrongMs = wrongMs;
    all.core.clock.merge(clockAt(all.rightMs() + datedMs));
    all.pass(250);
    assert.deepEqual(all.told, expected, says);
    all.pass(CLOCK_TELL_MS - 500);
    assert.equal(all.told.length, expected.length, `${says}: not so soon`);
    all.pass(500);
    assert.equal(all.told.length, 2 * expected.length, `${says}: again`);
  }
});

Deno.test("a doubt is noted when it has lasted, and when it is over", () => {
  const all = site({ depth: 2 });
  all.at.wrongMs = HOUR_MS;
  all.pass(CLOCK_DOUBT_MS - 1_000);
  assert.deepEqual(all.notes, []);
  all.pass(2_000);
  assert.deepEqual(all.notes, ["clock_doubted"]);
  all.at.wrongMs = 0;
  all.pass(1_000);
  assert.deepEqual(all.notes, ["clock_doubted", "clock_believed"]);
});
