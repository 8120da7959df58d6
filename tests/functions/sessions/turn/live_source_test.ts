import assert from "node:assert/strict";
import { LiveSource } from "../../../../functions/sessions/turn/live_source.ts";

Deno.test("a turn has its event's value of the store's clock, unless the session has written or read what is as new (LS1)", () => {
  const drawn: number[] = [];
  const host = {
    nowMs: () => 1,
    storeClock: (after: number) => {
      drawn.push(after);
      return after + 100;
    },
  };
  const rows: readonly (readonly [given: number, last: number, seen: number, dated: number])[] = [
    [5, 3, 4, 5],
    [5, 3, 5, 5],
    [5, 5, 4, 105],
    [5, 6, 4, 106],
    [5, 3, 7, 107],
  ];
  for (const [given, last, seen, dated] of rows) {
    assert.equal(new LiveSource(host, given, seen).storeClock(last), dated, `${given} ${last} ${seen}`);
  }
  assert.deepEqual(drawn, [5, 6, 7], "another is drawn only where that is so");
});
