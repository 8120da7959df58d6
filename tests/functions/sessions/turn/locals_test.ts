/** Closure timers of a program, and what it waits for (functions/sessions/turn/locals.ts, waits.ts). */
import assert from "node:assert/strict";
import { Locals } from "../../../../functions/sessions/turn/locals.ts";
import type { Program } from "../../../../functions/sessions/turn/program.ts";
import { type WaitingSession, type WaitOutcome, Waits } from "../../../../functions/sessions/turn/waits.ts";

const run = () => {};

Deno.test("one that is armed again waits what is left of its time, where that is known, and else all of it (LT1)", () => {
  const locals = new Locals(),
    left = (number: number, nowMs: number) => locals.leftMs(locals.get(number) ?? assert.fail(), nowMs);
  locals.arm(1, { ms: 100, run }, 1_000);
  locals.arm(2, { ms: 100, run }, null);
  assert.deepEqual([left(1, 1_030), left(2, 1_030)], [70, 100]);
  assert.deepEqual([left(1, 5_000), left(1, 500)], [0, 100], "whatever the clock says: not longer than that");
  locals.read(2_000);
  locals.arm(3, { ms: 100, run }, null);
  assert.deepEqual([left(1, 1_030), left(2, 2_040), left(3, 2_040)], [70, 60, 100]);
  locals.read(3_000);
  assert.deepEqual([left(2, 2_040), left(3, 3_001)], [60, 99], "the first reading counts");
});

/** A session whose isolate arms what it is told to. */
function waiting() {
  const armed: string[] = [], came: WaitOutcome[] = [], state = { nowMs: 1_000 };
  const programOf = () => ({ locals: new Locals(), calls: new Map() }) as unknown as Program;
  const session = { program: programOf(), came: (input: WaitOutcome) => void came.push(input) };
  const waits = new Waits({
    nowMs: () => state.nowMs,
    arm: (_, local, ms) => void armed.push(`${local} in ${ms}`),
    disarm: (_, local) => void armed.push(`not ${local}`),
  }, session as unknown as WaitingSession);
  return { waits, session, programOf, armed, came, state };
}

Deno.test("a closure timer comes once, where it was not cleared", () => {
  const { waits, armed, came } = waiting();
  for (const local of [1, 2, 3]) waits.arm(local, 10 * local);
  waits.disarm(2);
  waits.disarm(9);
  for (const local of [1, 1, 2]) waits.due(local);
  assert.deepEqual(came, [{ kind: "local", local: 1 }]);
  waits.close();
  waits.due(3);
  assert.deepEqual(armed, ["1 in 10", "2 in 20", "3 in 30", "not 2", "not 3"]);
  assert.equal(came.length, 1);
});

Deno.test("a result is for the program that waited for it (W1)", async () => {
  const { waits, session, programOf, came } = waiting();
  const [kept, lost] = [Promise.withResolvers<Uint8Array>(), Promise.withResolvers<Uint8Array>()];
  waits.compute(1, () => kept.promise);
  waits.compute(2, () => Promise.reject(Object.assign(new Error("no"), { code: "bad" })));
  await new Promise((resolve) => setTimeout(resolve));
  kept.resolve(Uint8Array.of(7));
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(came.splice(0), [
    { kind: "error", call: 2, code: "bad", message: "no" },
    { kind: "result", call: 1, bytes: Uint8Array.of(7) },
  ], "each as it comes");
  waits.compute(3, () => lost.promise);
  session.program = programOf();
  lost.resolve(Uint8Array.of(8));
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(came, []);
});

Deno.test("a program that was made again has its timers go on and its computations begin anew, but for what has come (W1)", () => {
  const { waits, session, programOf, armed, state } = waiting();
  const computed: number[] = [];
  for (const local of [1, 2]) waits.arm(local, 100);
  const program = session.program = programOf();
  for (const local of [2, 3, 4]) program.locals.arm(local, { ms: 100, run }, 950);
  const call = (number: number) => ({
    start: () => {
      computed.push(number);
      return new Promise<never>(() => {});
    },
  });
  Object.assign(program, {
    calls: new Map<number, unknown>([[5, call(5)], [6, call(6)], [7, {}], [2, call(2)]]),
  });
  armed.length = 0;
  state.nowMs = 1_010;
  waits.resume(program, [{ kind: "local", local: 4 }, { kind: "result", call: 6, bytes: new Uint8Array(0) }]);
  assert.deepEqual(armed, ["not 1", "3 in 40"]);
  assert.deepEqual(computed, [5, 2]);
});
