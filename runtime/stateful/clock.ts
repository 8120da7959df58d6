/**
 * Time for what serves stateful sessions: the system's, or another's in virtual time (tests/sites).
 */
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";

/** System's clock: it never goes back, and its timers are those of the process. */
export const SYSTEM_CLOCK: PeerClock = {
  nowMs: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
