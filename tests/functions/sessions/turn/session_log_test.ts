/** The part of a log that its isolate holds: what is taken back of it, and which numbers are given. */
import assert from "node:assert/strict";
import { SessionLog } from "../../../../functions/sessions/turn/session_log.ts";

/** A log that was opened with seven entries, and the numbers of what it gives out. */
function opened(): { log: SessionLog; add: (count: number) => void; given: () => number[] } {
  const log = new SessionLog(0, new Uint8Array(7), 7);
  const add = (count: number) => {
    for (let i = 0; i < count; i++) log.checkpoint(i);
  };
  const given = () => {
    const { first, count } = log.give();
    return Array.from({ length: count }, (_, i) => first + i);
  };
  return { log, add, given };
}

Deno.test("what was not given out is taken back, and its numbers are given again to others (SL2)", () => {
  const { log, add, given } = opened();
  add(2);
  log.point();
  add(3);
  assert.equal(log.cut(), 0, "nothing of it was given out");
  assert.deepEqual([log.sequence, given()], [9, [8, 9]]);
});

Deno.test("what was given out keeps its number when it is void, and numbers only grow (SL1, SL2)", () => {
  const { log, add, given } = opened(), seen: number[] = [];
  add(1);
  log.point();
  seen.push(...given());
  add(2);
  seen.push(...given()); // an intent, while a handler runs
  add(4);
  assert.equal(log.cut(), 2, "of those behind the commit point two were given out");
  assert.equal(log.sequence, 10);
  add(1);
  seen.push(...given());
  assert.deepEqual(seen, [8, 9, 10, 11]);
  log.point();
  log.restart();
  add(1);
  assert.deepEqual([log.first, given()], [12, [12]]);
});

Deno.test("bytes that were given out stay as they are when what came behind them is taken back (SL2)", () => {
  const { log, add } = opened();
  add(1);
  log.point();
  const { entries } = log.give(), before = entries.slice();
  for (let round = 0; round < 50; round++) {
    add(3);
    log.cut();
  }
  assert.deepEqual(entries, before);
  assert.equal(log.upToPoint().length, log.all().length);
});
