/**
 * Closure timers of a program (`setTimeout`), and what is known of when they were set: a log says what the clock was only
 * where it was read.
 *
 * LT1  One that is armed again, after a recovery, never goes off earlier than it would have: where nothing tells when it
 *      was set, it waits its whole time again.
 */

/** A closure timer. */
export interface Local {
  readonly ms: number;
  readonly run: () => void;
  /** It was set then, or before: the first reading of the clock in the turn that set it, or after it. */
  setMs: number | null;
}

/** See the file's header. */
export class Locals extends Map<number, Local> {
  /** Those of which it is not known. Most programs have none, and there are thousands of them. */
  #unknown: Local[] | null = null;

  /** @param clockMs as the turn that sets it has read it; null: it has not. */
  arm(number: number, { ms, run }: Omit<Local, "setMs">, clockMs: number | null): void {
    const local = { ms, run, setMs: clockMs };
    if (clockMs === null) (this.#unknown ??= []).push(local);
    this.set(number, local);
  }

  /** The clock was read. */
  read(clockMs: number): void {
    for (const local of this.#unknown ?? []) local.setMs = clockMs;
    this.#unknown = null;
  }

  /** What is left of its time (LT1). */
  leftMs({ ms, setMs }: Local, nowMs: number): number {
    return setMs === null ? ms : Math.min(ms, Math.max(0, setMs + ms - nowMs));
  }
}
