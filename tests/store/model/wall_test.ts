/** What is believed of a wall clock that leaps, by itself and by what neighbours say (store/model/wall.ts). */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import {
  CLOCK_AHEAD_MS_MAX,
  CLOCK_BEHIND_MS_MAX,
  CLOCK_LEAP_MS_MAX,
  CLOCK_STAYS_MS,
} from "../../../store/model/limits.ts";
import { Wall } from "../../../store/model/wall.ts";

const NOON_MS = Date.UTC(2026, 5, 1, 12);
const HOUR_MS = 3_600_000;

/** A machine: its wall clock says the time and what it is wrong by. */
function machine(wrongMs = 0) {
  const at = { ms: 0, wrongMs };
  const wall = new Wall({
    nowMs: () => NOON_MS + at.ms + at.wrongMs,
    steadyMs: () => at.ms,
    after: () => () => {},
    turn: () => Promise.resolve(),
  });
  return {
    wall,
    /** Time passes, in which the site looks at its clock now and then. */
    pass(ms: number) {
      const untilMs = at.ms + ms;
      while (at.ms < untilMs) {
        at.ms = Math.min(untilMs, at.ms + 500);
        wall.nowMs();
      }
    },
    /** Time passes, and nobody looks. */
    sleep(ms: number) {
      at.ms += ms;
    },
    leap(ms: number) {
      at.wrongMs = ms;
    },
    /** The time. */
    get rightMs() {
      return NOON_MS + at.ms;
    },
    /** For how long its clock has been doubted. */
    get doubtMs() {
      return wall.doubt?.forMs ?? null;
    },
    /** How far what is believed is ahead of it. */
    get offMs() {
      return wall.nowMs() - NOON_MS - at.ms;
    },
  };
}

Deno.test("a wall clock is believed as far as a time server sets it, and no further, up or back (B1, B2)", () => {
  for (const sign of [1, -1]) {
    const site = machine();
    site.pass(1_000);
    site.leap(sign * CLOCK_LEAP_MS_MAX);
    strictEqual(site.offMs, sign * CLOCK_LEAP_MS_MAX);
    site.leap(sign * (CLOCK_LEAP_MS_MAX + 1_000));
    ok(Math.abs(site.offMs) <= CLOCK_LEAP_MS_MAX, `${site.offMs}`);
    site.pass(10_000);
    deepStrictEqual(site.wall.doubt?.forMs, 10_000);
    site.leap(0);
    strictEqual(site.offMs, 0);
    strictEqual(site.wall.doubt, null);
  }
});

Deno.test("leaps that are narrow enough to be believed do not add up to a wide one", () => {
  const site = machine();
  for (let step = 1; step <= 20; step++) {
    site.leap(step * 20_000);
    site.pass(1_000);
  }
  ok(site.offMs <= CLOCK_AHEAD_MS_MAX, `${site.offMs} ms ahead`);
  ok(site.wall.doubt !== null);
});

Deno.test("a clock that is ahead is believed as far as another site's says so, or by an operator (B3, B4)", () => {
  const site = machine();
  site.leap(HOUR_MS);
  strictEqual(site.wall.agrees(site.rightMs + HOUR_MS / 2), true);
  strictEqual(site.offMs, HOUR_MS / 2);
  strictEqual(site.wall.agrees(site.rightMs + HOUR_MS + CLOCK_AHEAD_MS_MAX + 1), false, "nor is any further");
  strictEqual(site.offMs, HOUR_MS / 2);
  site.pass(2 * CLOCK_STAYS_MS);
  strictEqual(site.offMs, HOUR_MS / 2, "by itself it goes no further");
  site.wall.believe();
  strictEqual(site.offMs, HOUR_MS);
});

Deno.test("a clock that an operator vouches for is believed as it is then, whenever it was looked at last (B4)", () => {
  const site = machine();
  site.leap(HOUR_MS);
  site.sleep(HOUR_MS);
  site.wall.believe();
  strictEqual(site.offMs, HOUR_MS);
  strictEqual(site.wall.doubt, null);
  site.pass(1_000);
  strictEqual(site.offMs, HOUR_MS);
});

Deno.test("whoever has nobody to ask goes by a clock that has stayed, ahead or back, and dates nothing by it (B7)", () => {
  for (const leapMs of [HOUR_MS, -HOUR_MS]) {
    const alone = machine();
    alone.wall.isAlone = true;
    alone.leap(leapMs);
    alone.wall.nowMs();
    alone.pass(CLOCK_STAYS_MS - 1_000);
    strictEqual(alone.offMs, 0);
    strictEqual(alone.doubtMs, CLOCK_STAYS_MS - 1_000);
    alone.pass(1_000);
    strictEqual(alone.offMs, leapMs);
    strictEqual(alone.doubtMs, null);
    strictEqual(alone.wall.datesMs(), alone.rightMs);
    strictEqual(alone.wall.agrees(alone.rightMs), true, "who joins with the right time is let in");
    alone.wall.isAlone = false;
    strictEqual(alone.offMs, 0);
    strictEqual(alone.doubtMs, CLOCK_STAYS_MS, "it is doubted again, as long as it is");
  }
  const suspended = machine();
  suspended.wall.isAlone = true;
  suspended.leap(HOUR_MS);
  suspended.pass(2 * CLOCK_STAYS_MS);
  strictEqual(suspended.wall.agrees(suspended.rightMs + HOUR_MS), true);
  strictEqual(suspended.wall.datesMs(), suspended.rightMs + HOUR_MS, "another site's date says the same");
});

Deno.test("a clock that is set while it is looked at has not stayed (B7)", () => {
  const alone = machine();
  alone.wall.isAlone = true;
  for (let step = 1; step <= 10; step++) {
    alone.leap(step * HOUR_MS);
    alone.pass(CLOCK_STAYS_MS / 2);
    strictEqual(alone.offMs, 0);
  }
});

Deno.test("a clock that is behind is believed where a neighbour's agrees, not where one contradicts (B5)", () => {
  const rows: [heardMs: number | null, waitMs: number, isAlone: boolean, offMs: number][] = [
    [-HOUR_MS, 0, false, -HOUR_MS],
    [0, 0, false, 0],
    [0, 2 * CLOCK_STAYS_MS, false, 0],
    // A message of before says nothing of now.
    [-2 * HOUR_MS, 0, false, 0],
    [-HOUR_MS + CLOCK_AHEAD_MS_MAX - 1_000, 2 * CLOCK_STAYS_MS, false, -HOUR_MS],
    [null, 2 * CLOCK_STAYS_MS, false, 0],
    [null, 2 * CLOCK_STAYS_MS, true, -HOUR_MS],
  ];
  for (const [heardMs, waitMs, isAlone, offMs] of rows) {
    const site = machine();
    site.wall.isAlone = isAlone;
    site.leap(-HOUR_MS);
    for (let said = 0; heardMs !== null && said < 3; said++) {
      site.pass(1_000);
      site.wall.hears("parent", site.rightMs + heardMs, false);
    }
    site.pass(waitMs);
    strictEqual(site.offMs, offMs, `${heardMs} ${waitMs} ${isAlone}`);
  }
});

Deno.test("a message that was held up confirms no clock that is behind, nor a date one of which the site says otherwise (B5)", () => {
  const site = machine();
  site.leap(-70_000);
  site.wall.hears("child", site.rightMs, false);
  site.pass(10_000);
  site.wall.hears("child", site.rightMs - 40_000, false);
  site.pass(5_000);
  strictEqual(site.offMs, 0, "it was sent before the site stood still");
  site.wall.hears("child", site.rightMs, false);
  site.pass(5_000);
  strictEqual(site.offMs, 0);
  for (let said = 0; said < 3; said++) {
    site.wall.hears("child", site.rightMs - 70_000, true);
    site.wall.hears("child", site.rightMs, false);
    site.pass(1_000);
  }
  strictEqual(site.offMs, -70_000, "its wall clock says so, whatever it dates");
});

Deno.test("two messages that were held up, each while a site stood still, confirm no clock that is behind (B5)", () => {
  const site = machine();
  site.leap(-70_000);
  site.wall.hears("parent", site.rightMs, false);
  for (let stop = 0; stop < 2; stop++) {
    site.sleep(40_000);
    site.wall.hears("parent", site.rightMs - 40_000, false);
    site.pass(100);
  }
  strictEqual(site.offMs, 0, "nobody has said the same all the time between the two");
  for (let said = 0; said < 4; said++) {
    site.pass(1_000);
    site.wall.hears("parent", site.rightMs - 40_000, false);
  }
  strictEqual(site.offMs, -70_000, "who goes on saying so, every second, is believed");
});

Deno.test("a neighbour's clock confirms none that is further from it than what is believed (B5)", () => {
  const rows: [leapMs: number, saysMs: number, isWord: boolean, offMs: number][] = [
    [-57_000, 0, true, 0],
    [-57_000, 0, false, 0],
    [-57_000, -26_000, true, 0],
    [-90_000, -46_000, false, -90_000],
    [-90_000, -46_000, true, -90_000],
  ];
  for (const [leapMs, saysMs, isWord, offMs] of rows) {
    const site = machine();
    site.leap(leapMs);
    for (let said = 0; said < 10; said++) {
      site.wall.hears("child", site.rightMs + saysMs, isWord);
      site.pass(1_000);
    }
    strictEqual(site.offMs, offMs, `${leapMs} ${saysMs} ${isWord}`);
  }
});

Deno.test("a start goes on from the disk, and takes from the parent what its own clock can't know (B1, B6)", () => {
  const rows: [wrongMs: number, parentMs: number, offMs: number][] = [
    // Down for an hour: its own clock is right, and the parent says so.
    [0, 0, 0],
    // Its own clock is behind what it had dated: the battery is empty.
    [-10 * HOUR_MS, 0, 0],
    // Its own clock is an hour ahead.
    [HOUR_MS, 0, 0],
  ];
  for (const [wrongMs, parentMs, offMs] of rows) {
    const site = machine(wrongMs);
    site.wall.resume(site.rightMs - HOUR_MS);
    strictEqual(site.offMs, -HOUR_MS, `${wrongMs}`);
    site.wall.meets(site.rightMs + parentMs);
    strictEqual(site.wall.agrees(site.rightMs + parentMs), true);
    strictEqual(site.offMs, offMs, `${wrongMs}`);
  }
  const blank = machine(HOUR_MS);
  blank.wall.resume(0);
  blank.leap(-HOUR_MS);
  blank.wall.meets(blank.rightMs);
  strictEqual(blank.wall.agrees(blank.rightMs), true, "its clock was set back since it started");
  strictEqual(blank.offMs, 0);
  strictEqual(blank.wall.isTooFar(blank.rightMs + HOUR_MS), true, "where its clock was counts no more");
  const late = machine(-HOUR_MS);
  late.wall.resume(0);
  late.wall.meets(late.rightMs);
  strictEqual(late.wall.agrees(late.rightMs), false, "nothing tells which of the two is wrong");
});

Deno.test("a start believes no clock that is behind what the disk has, until somebody says how late it is (B1)", () => {
  const onDisk = (behindMs: number) => {
    const site = machine(-behindMs);
    site.wall.resume(site.rightMs);
    return site;
  };
  const near = onDisk(CLOCK_BEHIND_MS_MAX);
  strictEqual(near.offMs, -CLOCK_BEHIND_MS_MAX);
  near.leap(-CLOCK_LEAP_MS_MAX);
  strictEqual(near.offMs, -CLOCK_LEAP_MS_MAX, "a clock that was believed may be set as ever");
  const behindMs = CLOCK_BEHIND_MS_MAX + 1;
  const alone = onDisk(behindMs);
  alone.pass(10_000);
  strictEqual(alone.offMs, 0, "nobody says");
  strictEqual(alone.doubtMs, 10_000);
  alone.leap(0);
  strictEqual(alone.doubtMs, null, "it was set right");
  alone.leap(-behindMs);
  strictEqual(alone.offMs, -behindMs);
  const child = onDisk(behindMs);
  child.wall.meets(child.rightMs + HOUR_MS);
  strictEqual(child.offMs, HOUR_MS, "its parent says so (B6)");
  const same = onDisk(behindMs);
  same.wall.meets(same.rightMs);
  strictEqual(same.offMs, -behindMs, "no time had passed");
});

Deno.test("a welcome that was held up confirms no clock that is behind (B6)", () => {
  const blank = machine();
  blank.wall.resume(0);
  blank.leap(-70_000);
  const resumed = machine(-70_000);
  resumed.wall.resume(resumed.rightMs - 50_000);
  for (const site of [blank, resumed]) {
    site.wall.meets(site.rightMs - 41_000);
    strictEqual(site.offMs, -41_000);
    strictEqual(site.wall.agrees(site.rightMs), true, "its parent is heard");
    for (let said = 0; said < 10; said++) {
      site.pass(1_000);
      site.wall.hears("parent", site.rightMs, false);
    }
    strictEqual(site.offMs, -41_000, "nobody says the same as its clock");
    site.leap(-20_000);
    strictEqual(site.offMs, -20_000, "it was set, and is past what the welcome said");
  }
  const behind = machine(-20_000);
  behind.wall.resume(0);
  behind.wall.meets(behind.rightMs);
  for (let said = 0; said < 4; said++) {
    behind.wall.hears("parent", behind.rightMs, false);
    behind.pass(1_000);
  }
  strictEqual(behind.offMs, -20_000, "its parent says so again and again (B5)");
});

Deno.test("who does not believe its own clock takes the time from a parent that it would refuse; who does, does not (B6)", () => {
  // It was given a time that was late when it joined; then its own clock leapt, for good.
  const lost = machine();
  lost.wall.resume(0);
  lost.wall.meets(lost.rightMs);
  lost.leap(-40 * HOUR_MS);
  lost.pass(1_000);
  lost.wall.meets(lost.rightMs + HOUR_MS);
  strictEqual(lost.wall.agrees(lost.rightMs + HOUR_MS), false, "not for the blink of an eye");
  lost.pass(10_000);
  lost.wall.meets(lost.rightMs + 30_000);
  strictEqual(lost.offMs, 0, "it would not refuse that");
  lost.wall.meets(lost.rightMs + HOUR_MS);
  strictEqual(lost.wall.agrees(lost.rightMs + HOUR_MS), true);
  strictEqual(lost.offMs, HOUR_MS);
  const sure = machine();
  sure.wall.resume(sure.rightMs);
  sure.pass(10_000);
  sure.wall.meets(sure.rightMs + HOUR_MS);
  strictEqual(sure.wall.agrees(sure.rightMs + HOUR_MS), false);
  strictEqual(sure.offMs, 0);
});

Deno.test("time that is believed has whole milliseconds, and a suspended machine's goes on where its neighbours are", () => {
  const site = machine();
  site.wall.resume(NOON_MS - 0.5);
  ok(Number.isInteger(site.wall.nowMs()));
  const suspended = machine();
  suspended.leap(8 * HOUR_MS);
  strictEqual(suspended.offMs, 0);
  strictEqual(suspended.wall.agrees(suspended.rightMs + 8 * HOUR_MS), true);
  strictEqual(suspended.offMs, 8 * HOUR_MS);
  strictEqual(suspended.wall.doubt, null);
});
