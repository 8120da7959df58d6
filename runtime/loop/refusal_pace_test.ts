/** When those are told who are sent away, in virtual time. */
import assert from "node:assert/strict";
import { BURST, PER_MS, RefusalPace, REFUSALS_WAITING_MAX, WAIT_MS } from "./refusal_pace.ts";

/** A pace whose time is set, and who was told when. */
function timed() {
  const clock = { nowMs: 0 }, told: { readonly i: number; readonly ms: number }[] = [];
  const pace = new RefusalPace(() => clock.nowMs);
  const come = (i: number) => {
    const turn = pace.turn();
    if (turn === null) told.push({ i, ms: clock.nowMs });
    else turn.then(() => told.push({ i, ms: clock.nowMs }));
  };
  const passMs = async (ms: number) => {
    for (const untilMs = clock.nowMs + ms; clock.nowMs < untilMs; clock.nowMs++) {
      pace.look();
      await null;
    }
  };
  return { pace, told, come, passMs };
}

Deno.test("a few are told at once, a crowd in order and at its pace (RP1)", async () => {
  const { pace, told, come, passMs } = timed();
  const crowd = BURST + 500 * PER_MS;
  for (let i = 0; i < crowd; i++) come(i);
  assert.equal(told.length, BURST);
  come(crowd);
  await passMs(100);
  assert.ok(Math.abs(told.length - BURST - 100 * PER_MS) <= 2 * PER_MS, `${told.length} after 100 ms`);
  await passMs(500);
  assert.deepEqual(told.map(({ i }) => i), Array.from({ length: crowd + 1 }, (_, i) => i));
  assert.equal(pace.size, 0);
  for (let ms = 0; ms < 1_000; ms++) { // as many as can be told are told at once
    come(ms);
    assert.equal(pace.size, 0);
    await passMs(1);
  }
});

Deno.test("nobody waits longer than what all are told to wait, however many there are (RP2, RP3)", async () => {
  const { pace, told, come, passMs } = timed();
  const crowd = BURST + REFUSALS_WAITING_MAX + 100;
  for (let i = 0; i < crowd; i++) come(i);
  assert.deepEqual([told.length, pace.size], [BURST + 100, REFUSALS_WAITING_MAX]);
  await passMs(WAIT_MS + 1);
  assert.deepEqual([told.length, pace.size], [crowd, 0]);
});

Deno.test("who waits is told when the site goes away, and nobody waits then", async () => {
  const { pace, told, come, passMs } = timed();
  for (let i = 0; i < 2 * BURST; i++) come(i);
  pace.close();
  await null;
  assert.equal(told.length, 2 * BURST);
  for (let i = 0; i < 2 * BURST; i++) come(i);
  assert.equal(told.length, 4 * BURST);
  await passMs(1);
});
