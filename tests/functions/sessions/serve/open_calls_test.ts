/** The calls that a stateful session waits for, over a store by hand (functions/sessions/serve/open_calls.ts). */
import assert from "node:assert/strict";
import {
  encodeCallToSession,
  encodeGet,
  encodeStoreCommit,
} from "../../../../functions/sessions/turn/call_bytes.ts";
import { writeTurn } from "../../../../functions/sessions/turn/log_entry.ts";
import type { Call, CallOutcome, Commit } from "../../../../functions/sessions/turn/mod.ts";
import type { CallingSession } from "../../../../functions/sessions/serve/made_calls.ts";
import { callMaker } from "./call_maker.ts";
import { OpenCalls } from "../../../../functions/sessions/serve/open_calls.ts";
import { StoreUnavailable } from "../../../../store/api/api.ts";
import { Writer } from "../../../../store/model/codec.ts";
import { HandClock } from "../attach/peer_pair.ts";

const turns = () => new Promise<void>((resolve) => setTimeout(resolve));

/** A session whose reads and writes end when a test says so. */
function calling() {
  const clock = new HandClock(), told: [number, CallOutcome][] = [], failures: unknown[] = [];
  const waiting: PromiseWithResolvers<never>[] = [], signals: AbortSignal[] = [], heard: number[] = [];
  const made = () => {
    const one = Promise.withResolvers<never>();
    waiting.push(one);
    return one.promise;
  };
  const maker = callMaker({
    store: { get: made, commit: made },
    keyOf: (effect: number) => `key ${effect}`,
    callSession: (_: unknown, request: string, signal: AbortSignal) => {
      signals.push(signal);
      return made().then((answer) => ({ answer, heard: () => heard.push(Number(request.slice(4))) }));
    },
  } as unknown as CallingSession);
  const run = {
    clock,
    isOver: false,
    holds: () => () => {},
    done: (call: number, outcome: CallOutcome) => void told.push([call, outcome]),
    failed: (error: unknown) => void failures.push(error),
  };
  const calls = new OpenCalls(maker, run);
  return { calls, clock, told, failures, waiting, signals, heard, run };
}

const commitCall = (call: number): Call => ({
  call,
  kind: "commit",
  bytes: encodeStoreCommit([], []),
  effect: call,
});
const sessionCall = (call: number, id = "b"): Call => ({
  ...{ call, kind: "session", effect: call },
  bytes: encodeCallToSession({ target: { class: "robot", id }, chain: [], call: new Uint8Array(0) }),
});

/** A piece of the log: what it asks for, and the calls whose outcomes it has. */
const piece = (
  { calls = [] as readonly Call[], outcomes = [] as readonly number[], isPoint = false, isQuiescent = false },
): Pick<Commit, "entries" | "calls" | "isQuiescent" | "isPoint"> => {
  const writer = new Writer();
  for (const call of outcomes) {
    writeTurn(writer, { kind: "result", call, bytes: new Uint8Array(1) }, {
      clocks: [],
      storeClock: null,
      check: 1,
    }, 1);
  }
  return { entries: writer.done(), calls, isPoint, isQuiescent };
};

Deno.test("a call with an effect is open work from the piece with its intent on, until one has its outcome, or all is at rest (OC1)", () => {
  const { calls } = calling();
  assert.deepEqual([calls.areOpen, calls.areChecked], [false, false]);
  calls.logged(piece({ calls: [sessionCall(1)] }));
  assert.deepEqual([calls.areOpen, calls.areChecked], [true, false]);
  calls.logged(piece({ calls: [commitCall(2), { ...commitCall(9), effect: null }] }));
  assert.deepEqual([calls.areOpen, calls.areChecked], [true, true]);
  calls.logged(piece({ outcomes: [2] }));
  assert.deepEqual([calls.areOpen, calls.areChecked], [true, false]);
  calls.logged(piece({ outcomes: [1] }));
  assert.equal(calls.areOpen, false);
  calls.intended([commitCall(3)]);
  calls.logged(piece({ isQuiescent: true }));
  assert.equal(calls.areOpen, false, "what is not in it will be in none");
  calls.intended([commitCall(4), sessionCall(5)]);
  calls.drop(4);
  assert.deepEqual([calls.areOpen, calls.areChecked], [true, false]);
  calls.close();
  calls.logged(piece({ isQuiescent: true, calls: [sessionCall(6)] }));
  assert.equal(calls.areOpen, true, "what that piece itself leaves is");
});

Deno.test("one that was dropped before it was made is not made, nor one of which nobody's log knows (OC1)", async () => {
  const { calls, waiting, told } = calling();
  calls.make(commitCall(1));
  assert.deepEqual([waiting.length, calls.size], [0, 0]);
  calls.intended([commitCall(1), commitCall(2)]);
  calls.drop(1);
  calls.make(commitCall(1));
  calls.make(commitCall(2));
  calls.make({ call: 3, kind: "get", bytes: encodeGet([], "session"), effect: null });
  await turns();
  assert.deepEqual([waiting.length, calls.size, calls.kinds], [2, 2, ["commit", "get"]]);
  calls.drop(2);
  for (const one of waiting) one.reject(new StoreUnavailable("closed", "it stops"));
  await turns();
  assert.deepEqual(told.map(([call]) => call), [3], "nobody waits for the other");
});

Deno.test("a handler waits for the calls that it made itself, and for no others (OC2)", () => {
  const { calls } = calling();
  const made = [sessionCall(1, "one"), sessionCall(2, "two"), commitCall(3)];
  calls.intended(made);
  const waited = () => calls.waited("shop").map(({ name, request }) => `${name.app} ${name.id} ${request}`);
  for (const call of made) calls.make(call);
  assert.deepEqual(waited(), ["shop one key 1", "shop two key 2"]);
  const before = calls.handler;
  calls.logged(piece({}));
  assert.equal(calls.handler, before);
  calls.logged(piece({ isPoint: true }));
  assert.deepEqual(waited(), [], "that one is over");
  const other = sessionCall(4, "other");
  calls.intended([other]);
  calls.make(other, true, -1);
  assert.deepEqual(waited(), []);
  calls.drop(4);
  calls.intended([other]);
  calls.make(other);
  assert.deepEqual(waited(), ["shop other key 4"]);
});

Deno.test("a write that the home before may have made is asked for until that is known, a new one once (OC3)", async () => {
  for (
    const [isAgain, code, times] of [[true, "source_unreachable", 3], [true, "overloaded", 1], [
      false,
      "source_unreachable",
      1,
    ]] as const
  ) {
    const { calls, waiting, told, clock } = calling();
    calls.intended([commitCall(1)]);
    calls.make(commitCall(1), isAgain);
    for (let time = 1; time <= times; time++) {
      await turns();
      assert.equal(waiting.length, time, `${isAgain} ${code}`);
      const isLast = time === times;
      waiting.at(-1)?.reject(Object.assign(new Error(code), { code: isLast && times > 1 ? "other" : code }));
      await turns();
      assert.equal(told.length, isLast ? 1 : 0, `${isAgain} ${code}`);
      clock.turn(499);
      await turns();
      assert.equal(waiting.length, time, "after a pause");
      clock.turn(1);
    }
  }
  const over = calling();
  over.calls.intended([commitCall(1)]);
  over.calls.make(commitCall(1), true);
  await turns();
  over.run.isOver = true;
  over.waiting[0]?.reject(new StoreUnavailable("store_unreachable", "cut off"));
  await turns();
  over.clock.turn(10_000);
  await turns();
  assert.equal(over.waiting.length, 1, "another home asks now");
});

Deno.test("who was called hears that its answer is in the log, when that piece is at all owners, and no sooner (M2)", async () => {
  const { calls, waiting, told, heard, signals } = calling();
  calls.intended([sessionCall(1), sessionCall(2)]);
  for (const call of [1, 2]) calls.make(sessionCall(call));
  for (const one of waiting) one.resolve(new Uint8Array(1) as never);
  await turns();
  assert.deepEqual(told.map(([call]) => call), [1, 2]);
  const isHeld = calls.logged(piece({ outcomes: [1] }));
  assert.deepEqual(heard, []);
  isHeld();
  assert.deepEqual(heard, [1]);
  calls.logged(piece({ isQuiescent: true }))();
  calls.logged(piece({ outcomes: [2] }))();
  assert.deepEqual(heard, [1], "nobody's log has the other");
  calls.intended([sessionCall(3)]);
  calls.make(sessionCall(3));
  calls.close();
  assert.equal(signals.at(-1)?.aborted, true, "nobody waits for it");
});
