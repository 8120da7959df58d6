/** How often a home looks whether it is one still, where peers say that they have seen a newer one. */
import assert from "node:assert/strict";
import { Outrun } from "../../../../functions/sessions/attach/outrun.ts";
import { HandClock } from "./peer_pair.ts";

Deno.test("a home that is told of newer ones again and again looks less and less often, and at once after a while (OR1)", () => {
  const clock = new HandClock(), looks: number[] = [];
  const outrun = new Outrun(() => clock.nowMs());
  const told = (epoch: number) => outrun.told() && looks.push(epoch);
  for (let second = 0; second < 600; second++) {
    for (let i = 0; i < 3; i++) told(second);
    clock.turn(1_000);
  }
  assert.deepEqual(looks.slice(0, 7), [0, 1, 3, 7, 15, 31, 63]);
  assert(looks.length < 18, `${looks.length} looks in ten minutes`);
  clock.turn(120_000);
  const { length } = looks;
  for (const epoch of [2_000, 2_001]) told(epoch);
  assert.deepEqual(looks.slice(length), [2_000]);
});
