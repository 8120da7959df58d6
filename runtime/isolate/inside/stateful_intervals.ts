/**
 * The `setInterval` of stateful sessions: a closure timer that is set again each time it goes off. Libraries use one to
 * wait (rxjs, d3-timer), or to look after something while it is used (opossum, y-protocols).
 *
 * IV1  A session with one never rests, so that no checkpoint could be taken of it: a turn that leaves nothing open but
 *      intervals, with which nobody could clear one any more, fails with the line that set it.
 */
import type { Program } from "../../../functions/sessions/turn/program.ts";

interface Interval {
  /** Number of the closure timer that the interval waits for. */
  local: number;
  /** Error that is made where the interval was set: it names that line where the interval is left. */
  readonly left: Error;
}

const NEVER_RESTS =
  "a stateful session with one never rests; this.setTimer(name, ms) and onTimer(name) are " +
  "part of its state";

/** The intervals of all sessions of an isolate. */
export class Intervals {
  readonly #of = new WeakMap<Program, Map<number, Interval>>();

  /**
   * Sets an interval; returns its number, which is that of the first closure timer. @throws TypeError where no handler
   * runs (IV1).
   */
  set(program: Program, ms: number, run: () => void): number {
    if (program.handler === null) throw new TypeError(`setInterval works within a handler: ${NEVER_RESTS}`);
    const left = new TypeError(
      `setInterval: its handler has ended, and nothing is open that could clear it: ${NEVER_RESTS}`,
    );
    let all = this.#of.get(program);
    if (all === undefined) this.#of.set(program, all = new Map());
    const goesOff = (): void => {
      // First, so that `run` can clear the next one.
      interval.local = program.setLocal(ms, goesOff);
      run();
    };
    const interval: Interval = { local: program.setLocal(ms, goesOff), left };
    const number = interval.local;
    all.set(number, interval);
    return number;
  }

  /** Clears an interval; returns false where there is none of that number. */
  clear(program: Program, number: number): boolean {
    const all = this.#of.get(program);
    const interval = all?.get(number);
    if (all === undefined || interval === undefined) return false;
    all.delete(number);
    program.clearLocal(interval.local);
    return true;
  }

  /** Returns the error for an interval that nobody clears, at the end of a turn (IV1). */
  left(program: Program): Error | undefined {
    const all = this.#of.get(program);
    if (all === undefined || program.handler !== null || program.calls.size > 0) return undefined;
    const set = [...all.values()].filter(({ local }) => program.locals.has(local));
    return set.length === program.locals.size ? set[0]?.left : undefined;
  }
}
