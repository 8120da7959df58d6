/** Neighbours whose clocks are too far ahead (store/clock_guard.ts). */
import { strict as assert } from "node:assert";
import { ClockGuard } from "../../store/clock_guard.ts";
import { HybridClock } from "../../store/clock.ts";
import { CLOCK_AHEAD_MS_MAX } from "../../store/limits.ts";
import { CLOCK_TICKS_PER_MS } from "../../store/row.ts";
import { ProcessClock, World } from "../sim/world.ts";

Deno.test("a neighbour that is ahead is refused until its clock is right, or until it is gone", () => {
  const ports = { clock: new ProcessClock(new World(), { skewMs: 0, drift: 0 }) };
  const clock = new HybridClock(ports.clock);
  const refused: string[] = [];
  const guard = new ClockGuard({
    clock,
    ports,
    closed: false,
    refused: (event, from) => void refused.push(`${event} ${from}`),
  });
  const right = clock.tick(), ahead = right + (CLOCK_AHEAD_MS_MAX + 5_000) * CLOCK_TICKS_PER_MS;
  const says = (site: string, said: number) => guard.refuses(site, said, () => {});
  assert.deepEqual([says("a", ahead), says("b", ahead), says("c", right)], [true, true, false]);
  assert.deepEqual(guard.refused, ["a", "b"]);
  assert.equal(says("a", right), false);
  assert.deepEqual(guard.refused, ["b"]);
  guard.forget("b");
  assert.deepEqual(guard.refused, []);
  assert.deepEqual(refused, ["clock_ahead a", "clock_ahead b"]);
});
