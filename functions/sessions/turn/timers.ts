/** Limits of the named timers of a session. */
import { AppError } from "../../vocabulary/errors.ts";

/** Number of timers of one session, of each kind: the most that a program which forgets to clear them may hold. */
export const TIMERS_MAX = 1_000;
export const TIMER_NAME_CHARS_MAX = 200;
/** Milliseconds of 100 years: beyond, dates are no dates any more. */
const NAMED_TIMER_MS_MAX = 100 * 366 * 24 * 3_600_000;

/** Checks a named timer that is to be set. @throws AppError */
export function checkTimer(name: unknown, ms: number, set: ReadonlyMap<string, number>): void {
  if (typeof name !== "string" || name === "" || name.length > TIMER_NAME_CHARS_MAX || !name.isWellFormed()) {
    throw new AppError(
      "value_invalid",
      `a timer's name is a text of 1 to ${TIMER_NAME_CHARS_MAX} characters`,
    );
  }
  if (!(ms >= 0 && ms <= NAMED_TIMER_MS_MAX)) {
    throw new AppError(
      "value_invalid",
      `setTimer(${JSON.stringify(name)}): ${ms} is no number of milliseconds`,
    );
  }
  if (set.size >= TIMERS_MAX && !set.has(name)) {
    throw new AppError(
      "limit_timers",
      `setTimer: ${TIMERS_MAX} timers of this stateful session are set already`,
    );
  }
}
