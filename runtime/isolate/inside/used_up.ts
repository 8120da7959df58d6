/**
 * Recognises that a process has used up its stack or its memory, by the errors that code is given: how far that code
 * came is in no log, and differs at a replay.
 */

/** The resource that was used up. */
export type UsedUp = "stack" | "memory";

const MESSAGES: readonly (readonly [message: RegExp, what: UsedUp])[] = [
  [/^Maximum call stack size exceeded$/, "stack"],
  [/^Array buffer allocation failed$|Out of memory|could not allocate memory|Unable to grow/i, "memory"],
];
/** Levels to which errors within errors are looked into, and number of them in one. */
const DEPTH_MAX = 4;
const ERRORS_MAX = 100;

/** Returns the resource that was used up, where an error says so, or one that it came of or has with it. */
export function usedUp(error: unknown, depth = 0): UsedUp | undefined {
  if (!(error instanceof Error) || depth === DEPTH_MAX) return undefined;
  if (error instanceof RangeError) {
    const { message } = error;
    const found = MESSAGES.find(([pattern]) => pattern.test(message));
    if (found !== undefined) return found[1];
  }
  for (const each of within(error)) {
    const found = usedUp(each, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the errors that another one has, without a call of an app's code. */
function within(error: Error): unknown[] {
  const own = (name: string): unknown => Reflect.getOwnPropertyDescriptor(error, name)?.value;
  const found = [own("cause")];
  if (error instanceof SuppressedError) found.push(own("error"), own("suppressed"));
  const errors = error instanceof AggregateError ? own("errors") : undefined;
  if (Array.isArray(errors)) found.push(...errors.slice(0, ERRORS_MAX));
  return found;
}
