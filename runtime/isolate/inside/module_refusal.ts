/** Refusals for stateful sessions that would change what their modules hold. */
import { AppError } from "../../../functions/vocabulary/errors.ts";
import { guard, isGuarded } from "./guarded.ts";

const FIX = "all sessions of an isolate share it, and no log has it. Keep it in a field of the session; " +
  "what is costly to make and the same for all is read with this.cache.read(name, load)";

/** Returns the error for a change of what modules hold, by its place in them. */
export const refusal = (what: string): AppError =>
  new AppError(
    "module_state",
    `a stateful session can't change ${what}, which a module or class holds: ${FIX}`,
    { what },
  );

/**
 * Has an object with a state of its own refuse to be changed, by its place in modules (MF1, module_state.ts). A stream
 * that is open is locked: there are many ways to read from one, and all of them want a lock.
 */
export function seal(object: object, path: string): void {
  if (isGuarded(object)) return;
  if (object instanceof ReadableStream && !object.locked) object.getReader();
  if (object instanceof WritableStream && !object.locked) object.getWriter();
  guard(object, (name) => {
    throw refusal(`${path} by ${String(name)}`);
  });
}
