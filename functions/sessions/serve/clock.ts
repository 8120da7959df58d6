/**
 * Pauses, and timers whose faults are contained, over the clock that stateful sessions are served by: the system's, or
 * one of virtual time.
 */
import type { PeerClock } from "../attach/mod.ts";

/** Resolves after `ms` milliseconds. */
export const pauseBy = (clock: PeerClock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

/**
 * Returns a clock of the same time on which an error thrown by a timer is passed to `failed`, and ends nothing else.
 */
export const guarded = (clock: PeerClock, failed: (error: unknown) => void): PeerClock => ({
  nowMs: () => clock.nowMs(),
  after: (ms, run) =>
    clock.after(ms, () => {
      try {
        run();
      } catch (error) {
        failed(error);
      }
    }),
});
