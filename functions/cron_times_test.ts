import assert from "node:assert/strict";
import { cronProblem, CronTimes } from "./cron_times.ts";

const at = (text: string) => Date.parse(`${text}Z`);
const shown = (ms: number) => Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 16) : String(ms);

const ROWS: readonly (readonly [cron: string, now: string, upTo: string, after: string])[] = [
  ["* * * * *", "2026-11-21T13:00:00", "2026-11-21T13:00", "2026-11-21T13:01"],
  ["* * * * *", "2026-11-21T13:00:59.999", "2026-11-21T13:00", "2026-11-21T13:01"],
  ["*/15 * * * *", "2026-11-21T13:14:59", "2026-11-21T13:00", "2026-11-21T13:15"],
  ["0 3 * * *", "2026-11-21T02:59:59", "2026-11-20T03:00", "2026-11-21T03:00"],
  ["0 3 * * *", "2026-11-21T03:00:00", "2026-11-21T03:00", "2026-11-22T03:00"],
  ["0  3\t* * *", "2026-11-21T03:00:00", "2026-11-21T03:00", "2026-11-22T03:00"],
  ["30 9-17 * * MON-FRI", "2026-11-21T13:00:00", "2026-11-20T17:30", "2026-11-23T09:30"],
  ["0 0 * * 0", "2026-11-21T13:00:00", "2026-11-15T00:00", "2026-11-22T00:00"],
  ["0 0 * * 7", "2026-11-21T13:00:00", "2026-11-15T00:00", "2026-11-22T00:00"],
  ["0 0 29 2 *", "2026-11-21T13:00:00", "2024-02-29T00:00", "2028-02-29T00:00"],
  ["0 0 31 * *", "2026-11-21T13:00:00", "2026-10-31T00:00", "2026-12-31T00:00"],
  ["0 0 L * *", "2026-11-21T13:00:00", "2026-10-31T00:00", "2026-11-30T00:00"],
  // The 13th, and every Friday (C2).
  ["0 0 13 * 5", "2026-11-21T13:00:00", "2026-11-20T00:00", "2026-11-27T00:00"],
  // No hour is left out or comes twice where clocks change: it is UTC.
  ["30 2 * * *", "2026-03-29T02:29:00", "2026-03-28T02:30", "2026-03-29T02:30"],
  ["59 23 31 12 *", "2026-12-31T23:59:00", "2026-12-31T23:59", "2027-12-31T23:59"],
];

Deno.test("a cron expression comes due when it says, in UTC", async (t) => {
  for (const [cron, now, upTo, after] of ROWS) {
    await t.step(`${cron} at ${now}`, () => {
      const times = new CronTimes(cron);
      assert.deepEqual([shown(times.upTo(at(now))), shown(times.after(at(now)))], [upTo, after]);
    });
  }
});

Deno.test("a text that is no cron expression is refused, with why (C1)", () => {
  const rows: [string, RegExp][] = [
    ["", /five fields/],
    ["daily", /five fields/],
    ["@daily", /five fields/],
    ["0 3 * *", /five fields/],
    ["0 0 3 * * *", /five fields/],
    ["60 * * * *", /Invalid value for minute: 60/],
    ["0 25 * * *", /hour: 25/],
    ["0 0 0 * *", /day/i],
    ["0 0 * 13 *", /month/i],
    ["*/0 * * * *", /stepping: 0/],
    ["5-2 * * * *", /larger/],
    ["a b c d e", /illegal/],
    ["0 0 13 * +5", /five fields/],
    ["? * * * *", /five fields/],
    ["0 0 31 2 *", /never comes due/],
  ];
  for (const [text, expected] of rows) {
    assert.match(cronProblem(text) ?? "fine", expected, text);
    assert.throws(() => new CronTimes(text), RangeError);
  }
});
