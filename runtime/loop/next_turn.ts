/**
 * Turns of the event loop, for whoever does much in slices: the pump, the storage, links, apps (isolate/app_turns.ts).
 *
 * NT1  What waits for a turn goes on in the order in which it asked.
 * NT2  Of those that wait, no more go on in one turn than until TURN_MS of it have passed; the rest has the next. So a turn
 *      takes that long, and what the last of them takes, however many there are; and what comes from outside is looked at
 *      after each.
 */
import { setImmediate } from "node:timers";

/** As slices are long: ten who each do a millisecond's worth take ten turns, not one of ten milliseconds. */
export const TURN_MS = 1;

/** Who waits, in order. For each there is one call of `proceed` to come. */
const waiting: (() => void)[] = [];
/** When the first of this turn went on; null: none has. */
let beganMs: number | null = null;

/** Resolves when this one may go on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => afterTurn(resolve));
}

/** The same, by a callback. */
export function afterTurn(go: () => void): void {
  waiting.push(go);
  setImmediate(proceed);
}

function proceed(): void {
  const nowMs = performance.now();
  if (beganMs === null) {
    beganMs = nowMs;
    setImmediate(begin); // of the next turn the first: what is put off, or asks now, is called after it
  } else if (nowMs - beganMs >= TURN_MS) return void setImmediate(proceed);
  waiting.shift()?.();
}

function begin(): void {
  beganMs = null;
}
