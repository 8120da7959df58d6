/**
 * Closure timers of a program (`setTimeout`), and what is known of the time at which each was set: a log holds the
 * clock only where it was read.
 *
 * LT1  A closure timer that is armed again, after a recovery, never goes off earlier than it would have. Where nothing
 *      tells when it was set, it waits its whole time again.
 */

/** A closure timer. */
export interface Local {
  readonly ms: number;
  readonly run: () => void;
  /**
   * Latest time at which the timer was set: the first reading of the clock in the turn that set it, or after it; null:
   * none yet.
   */
  setMs: number | null;
}

/** The closure timers of a program, by number. */
export class Locals extends Map<number, Local> {
  /**
   * Timers of which the time is not known yet; null: none. Most programs have none, and an isolate has thousands of
   * programs.
   */
  #unknown: Local[] | null = null;

  /**
   * Adds a closure timer. @param clockMs the clock as the turn that sets the timer has read it; null: it has not read
   * it.
   */
  arm(number: number, { ms, run }: Omit<Local, "setMs">, clockMs: number | null): void {
    const local = { ms, run, setMs: clockMs };
    if (clockMs === null) (this.#unknown ??= []).push(local);
    this.set(number, local);
  }

  /** Notes a reading of the clock: timers of unknown time were set then, or before. */
  read(clockMs: number): void {
    for (const local of this.#unknown ?? []) local.setMs = clockMs;
    this.#unknown = null;
  }

  /** Returns what is left of a timer's time (LT1). */
  leftMs({ ms, setMs }: Local, nowMs: number): number {
    return setMs === null ? ms : Math.min(ms, Math.max(0, setMs + ms - nowMs));
  }
}
