/**
 * Turns of the event loop, for work in slices: the pump, the storage, links, apps (isolate/app_turns.ts).
 *
 * NT1  Callers that wait for a turn go on in the order in which they asked.
 * NT2  Of the callers that wait, no more go on in one turn than until TURN_MS of it have passed; the others have the
 *      next. So a turn takes that long, and what the last of them takes, however many there are; and what comes from
 *      outside is looked at after each.
 */
import { setImmediate } from "node:timers";

/**
 * Milliseconds of a turn, as long as slices are: ten callers with a millisecond's worth each take ten turns, not one of
 * 10 ms.
 */
export const TURN_MS = 1;

/** Callbacks that wait, in order. For each there is one call of `proceed` to come. */
const waiting: (() => void)[] = [];
/** Time at which the first callback of this turn went on; null where none has. */
let beganMs: number | null = null;

/** Resolves when the caller may go on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => afterTurn(resolve));
}

/** Calls back when the caller may go on. */
export function afterTurn(go: () => void): void {
  waiting.push(go);
  setImmediate(proceed);
}

function proceed(): void {
  const nowMs = performance.now();
  if (beganMs === null) {
    beganMs = nowMs;
    setImmediate(begin); // runs first in the next turn: callbacks that are put off, or ask now, come after it
  } else if (nowMs - beganMs >= TURN_MS) return void setImmediate(proceed);
  waiting.shift()?.();
}

function begin(): void {
  beganMs = null;
}
