/**
 * Time as what serves stateful sessions has it: the system's, or another's in virtual time (tests/sites).
 */
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";

/** The system's: it never goes back, and its timers are those of the process. */
export const SYSTEM_CLOCK: PeerClock = {
  nowMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

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
