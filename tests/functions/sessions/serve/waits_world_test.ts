/**
 * Sessions that call each other at random come to an end, and rules that are left out are found (waits_world.ts). What a
 * second look is for (W1) takes four of them and a moment; waits_test.ts has that.
 */
import assert from "node:assert/strict";
import { Draws } from "../../../sim/random.ts";
import { type WaitsBreaks, WaitsWorld } from "./waits_world.ts";

async function runs(seeds: number, breaksOf: () => WaitsBreaks = () => ({})) {
  const wrong: string[] = [];
  let circles = 0, answered = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const world = new WaitsWorld(new Draws(`waits ${seed}`), breaksOf());
    await world.run();
    wrong.push(...world.wrong.map((each) => `seed ${seed}: ${each}`));
    circles += world.circles;
    answered += world.answered;
  }
  return { wrong, circles, answered };
}

Deno.test("sessions that call each other at random wait for no circle, and no other call fails for one", async () => {
  const { wrong, circles, answered } = await runs(150);
  assert.deepEqual(wrong, []);
  assert.ok(circles > 30 && answered > 1_000, `${circles} circles, ${answered} answers`);
});

const BROKEN: readonly (readonly [what: string, breaksOf: () => WaitsBreaks, says: RegExp])[] = [
  ["nobody looks", () => ({ blind: true }), /WW2/],
  [
    "everybody refuses a call of its own (W2)",
    () => ({ told: async (ask) => ({ ...await ask(), isQueued: false }) }),
    /WW1: \w+ is in no circle/,
  ],
  ["a call that was begun is refused", () => ({ undoes: true }), /WW1: \w+ has been begun/],
];

for (const [what, breaksOf, says] of BROKEN) {
  Deno.test(`calls at random find it where ${what}`, async () => {
    const { wrong } = await runs(60, breaksOf);
    assert.match(wrong.join("\n"), says);
  });
}
