/**
 * Pauses, and timers whose faults are contained, over the clock that a stateful session is served by: the system's, or one
 * of virtual time.
 */
import type { PeerClock } from "../attach/mod.ts";

/** Resolves after so long. */
export const pauseBy = (clock: PeerClock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

/** The same time; what is thrown when it has passed is told, and ends nothing else. */
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
