/** When the named timers of an open stateful session are called (functions/sessions/serve/timers.ts). */
import assert from "node:assert/strict";
import { Timers } from "../../../../functions/sessions/serve/timers.ts";
import { HandClock } from "../attach/peer_pair.ts";

/** A wall clock that is wrong by as much as it is told. */
function timing() {
  const clock = new HandClock(), called: string[] = [], wrong = { ms: 0 };
  const timers = new Timers(() => clock.nowMs() + wrong.ms, clock, (name) => void called.push(name));
  const planAndSet = (name: string, dueMs: number) => {
    timers.plan(name, dueMs);
    timers.set(name, dueMs);
  };
  return { clock, called, wrong, timers, planAndSet };
}

Deno.test("what is planned says when the session is to be woken; only what is set is called, once (T1)", () => {
  const { clock, called, timers, planAndSet } = timing();
  assert.equal(timers.earliest, null);
  timers.plan("planned", 500);
  planAndSet("set", 1_000);
  assert.equal(timers.earliest, 500);
  assert.deepEqual(timers.list(), [{ name: "planned", dueMs: 500 }, { name: "set", dueMs: 1_000 }]);
  clock.turn(999);
  assert.deepEqual(called, []);
  clock.turn(10_000);
  assert.deepEqual(called, ["set"]);
  assert.equal(timers.earliest, 500, "it is called for the last time when the log says so");
  timers.fired("set", 999);
  assert.equal(timers.list().length, 2, "that was another");
  timers.fired("set", 1_000);
  timers.plan("planned", null);
  assert.equal(timers.earliest, null);
});

Deno.test("one that was planned otherwise since is not called, nor set, as it was (T1)", () => {
  const { clock, called, timers, planAndSet } = timing();
  planAndSet("later", 100);
  timers.plan("later", 900);
  timers.plan("cleared", null);
  timers.set("cleared", 50);
  planAndSet("gone", 50);
  timers.set("gone", null);
  planAndSet("again", 100);
  planAndSet("again", 300);
  clock.turn(200);
  assert.deepEqual(called, []);
  timers.set("later", 900);
  clock.turn(200);
  assert.deepEqual(called, ["again"]);
  clock.turn(1_000);
  assert.deepEqual(called, ["again", "later"]);
  planAndSet("closed", clock.nowMs() + 10);
  timers.close();
  clock.turn(1_000);
  assert.deepEqual(called, ["again", "later"]);
});

Deno.test("none is called before its time by the wall clock, however that is set and however far off it is (T2)", () => {
  const { clock, called, wrong, planAndSet } = timing();
  planAndSet("soon", 1_000);
  planAndSet("past", -5);
  clock.turn(0);
  assert.deepEqual(called.splice(0), ["past"]);
  wrong.ms = -400;
  clock.turn(1_399);
  assert.deepEqual(called, []);
  clock.turn(1);
  assert.deepEqual(called.splice(0), ["soon"]);
  wrong.ms = 0;
  planAndSet("far", clock.nowMs() + 3_600_000);
  wrong.ms = 3_500_000; // the clock is set right
  clock.turn(99_999);
  assert.deepEqual(called, []);
  clock.turn(60_001);
  assert.deepEqual(called, ["far"], "it is looked again every minute");
});
