/** The hybrid clock by itself: the simulators' clocks are mostly too close to each other to need what it merges. */
import assert from "node:assert/strict";
import { HybridClock } from "../../../store/model/clock.ts";
import { CLOCK_AHEAD_MS_MAX } from "../../../store/model/limits.ts";
import type { Clock } from "../../../store/model/ports.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { Wall } from "../../../store/model/wall.ts";

/** A wall clock that is set by hand. */
class SetClock implements Clock {
  ms: number;
  readonly #epochMs: number;

  constructor(ms: number, epochMs = 0) {
    this.ms = ms;
    this.#epochMs = epochMs;
  }

  nowMs(): number {
    return this.#epochMs + this.ms;
  }

  steadyMs(): number {
    return 0;
  }

  after(): () => void {
    throw new Error("a clock that only counts sets no timers");
  }

  turn(): Promise<void> {
    return Promise.resolve();
  }
}

function clockAt(ms: number): { readonly wall: SetClock; readonly clock: HybridClock } {
  const wall = new SetClock(ms, CLOCK_EPOCH_MS);
  return { wall, clock: new HybridClock(new Wall(wall)) };
}

Deno.test("what is written after something was seen is later than it, though the wall clock is behind (C1, C3)", () => {
  const { clock } = clockAt(1_000);
  const seen = 5_000 * CLOCK_TICKS_PER_MS;
  clock.merge(seen);
  assert.equal(clock.last, seen);
  assert.equal(clock.tick(), seen + 2);
  assert.equal(clock.tick(), seen + 4);
  clock.merge(seen + 5);
  assert.equal(clock.tick(), seen + 6, "its own are even (C3)");
});

Deno.test("what is older than what was seen takes nothing back (C1)", () => {
  const { clock } = clockAt(1_000);
  clock.merge(5_000 * CLOCK_TICKS_PER_MS);
  clock.merge(2_000 * CLOCK_TICKS_PER_MS);
  assert.equal(clock.tick(), 5_000 * CLOCK_TICKS_PER_MS + 2);
});

Deno.test("ticks grow within a millisecond, follow the wall clock, and grow where it is set back (C1)", () => {
  const { wall, clock } = clockAt(1_000);
  const ticks = [clock.tick(), clock.tick()];
  wall.ms = 2_000;
  ticks.push(clock.tick());
  wall.ms = 500;
  ticks.push(clock.tick());
  assert.deepEqual(ticks, [
    1_000 * CLOCK_TICKS_PER_MS,
    1_000 * CLOCK_TICKS_PER_MS + 2,
    2_000 * CLOCK_TICKS_PER_MS,
    2_000 * CLOCK_TICKS_PER_MS + 2,
  ]);
});

Deno.test("a value is too far ahead beyond the limit, and not at it (C2)", () => {
  const { clock } = clockAt(1_000);
  const limit = (1_000 + CLOCK_AHEAD_MS_MAX) * CLOCK_TICKS_PER_MS;
  assert.equal(clock.admits(limit), true);
  assert.equal(clock.admits(limit + CLOCK_TICKS_PER_MS), false);
  assert.equal(clock.last, 0, "asking merges nothing");
});
