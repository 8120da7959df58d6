/** Calls that wait for an isolate, in virtual time: bursts are served in order, an overload is served fresh. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { CallQueue } from "../../../runtime/isolate/call_queue.ts";

const WAITING_MAX = 1_024;
const LOOK_MS = 100;

interface Served {
  readonly waitedMs: number[];
  sentAway: number;
}

/**
 * An app that begins `doneMs` calls a millisecond, of which `comeMs` come: open loop, as clients are that have other
 * things to do.
 */
function serve(comePerMs: number, donePerMs: number, lastMs: number): Served {
  const queue = new CallQueue<number>(), served: Served = { waitedMs: [], sentAway: 0 };
  let come = 0, done = 0;
  for (let nowMs = 0; nowMs < lastMs; nowMs++) {
    for (come += comePerMs; come >= 1; come--) {
      if (queue.isFull(WAITING_MAX, nowMs)) served.sentAway++;
      else queue.push(nowMs, nowMs);
    }
    for (done = Math.min(done + donePerMs, 1); done >= 1 && queue.size > 0; done--) {
      const cameMs = queue.next(nowMs);
      if (cameMs !== undefined) served.waitedMs.push(nowMs - cameMs);
    }
    if (nowMs % LOOK_MS === 0) served.sentAway += queue.shed(nowMs).length;
  }
  served.waitedMs.sort((a, b) => a - b);
  return served;
}

const p = ({ waitedMs }: Served, share: number): number =>
  waitedMs[Math.floor(waitedMs.length * share)] ?? Infinity;

Deno.test("at ten times what can be done those who are served have waited little, and nothing is idle", () => {
  const lastMs = 60_000;
  for (const perMs of [0.05, 0.2, 1]) {
    const served = serve(10 * perMs, perMs, lastMs);
    assert.ok(p(served, 0.5) <= 100, `half of them waited ${p(served, 0.5)} ms at ${perMs}`);
    assert.ok(p(served, 0.99) <= 2_100, `and one of a hundred ${p(served, 0.99)} ms`);
    assert.ok(served.waitedMs.length >= 0.99 * perMs * lastMs, `${served.waitedMs.length} were served`);
  }
});

Deno.test("a burst is served whole and in order, a little less than what can be done waits for nothing", () => {
  const queue = new CallQueue<number>();
  for (let i = 0; i < 900; i++) queue.push(i, 0);
  const order: (number | undefined)[] = [];
  for (let nowMs = 1; nowMs <= 900; nowMs++) {
    assert.deepEqual(queue.shed(nowMs), []);
    order.push(queue.next(nowMs));
  }
  assert.deepEqual(order, Array.from({ length: 900 }, (_, i) => i));
  const served = serve(0.9, 1, 20_000);
  assert.deepEqual([served.sentAway, p(served, 0.999) <= 2], [0, true]);
});

Deno.test("where more comes than can be done as many wait as are begun in half a second, and a burst as ever", () => {
  const queue = new CallQueue<number>();
  for (let i = 0; i < WAITING_MAX; i++) {
    assert.equal(queue.isFull(WAITING_MAX, 0), false);
    queue.push(i, 0);
  }
  assert.equal(queue.isFull(WAITING_MAX, 0), true);
  let most = 0;
  for (let nowMs = 1; nowMs <= 4_000; nowMs++) { // one is begun each 10 ms, of as many as may come
    if (nowMs % 10 === 0) queue.next(nowMs);
    if (nowMs % 50 === 0) queue.shed(nowMs);
    for (let i = 0; i < WAITING_MAX && !queue.isFull(WAITING_MAX, nowMs); i++) queue.push(nowMs, nowMs);
    if (nowMs > 2_000) most = Math.max(most, queue.size);
  }
  assert.ok(most >= 49 && most <= 51, `${most} waited`);
  for (let nowMs = 4_001; nowMs <= 6_000; nowMs++) { // nothing is begun: a few may wait at any pace
    queue.shed(nowMs);
    while (!queue.isFull(WAITING_MAX, nowMs)) queue.push(nowMs, nowMs);
  }
  assert.equal(queue.size, 16);
});

Deno.test("while nobody serves nobody is sent away, and those who waited are served when somebody does (Q2)", () => {
  const queue = new CallQueue<string>();
  queue.push("a", 0);
  for (let nowMs = 100; nowMs <= 8_000; nowMs += 100) {
    queue.nobodyServes(nowMs);
    assert.deepEqual(queue.shed(nowMs), []);
  }
  assert.equal(queue.next(8_100), "a");
});

Deno.test("what was put in comes out once (Q1)", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("push" as const) }),
    fc.record({ do: fc.constant("next" as const) }),
    fc.record({ do: fc.constant("back" as const) }),
    fc.record({ do: fc.constant("shed" as const) }),
    fc.record({ do: fc.constant("idle" as const) }),
  );
  const steps = fc.array(fc.tuple(step, fc.nat(700)), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const queue = new CallQueue<number>(), out: number[] = [];
      let nowMs = 0, pushed = 0;
      for (const [{ do: what }, ms] of all) {
        nowMs += ms;
        if (what === "push") queue.push(pushed++, nowMs);
        else if (what === "shed") out.push(...queue.shed(nowMs));
        else if (what === "idle") queue.nobodyServes(nowMs);
        else if (what === "back") {
          const last = out.pop();
          if (last !== undefined) queue.return([last], nowMs);
        } else {
          const one = queue.next(nowMs);
          if (one !== undefined) out.push(one);
        }
      }
      out.push(...queue.takeAll());
      assert.equal(queue.size, 0);
      assert.deepEqual(out.toSorted((a, b) => a - b), Array.from({ length: pushed }, (_, i) => i));
    }),
    { numRuns: 2_000 },
  );
});
