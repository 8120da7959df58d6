/** Stack traces as an app's author can use them: places in the bundle, without the bootstrap around it. */

/**
 * Address that the bundle is imported from, which says nothing. `bundle:3:5` is what runtime/bundle/ turns into a
 * module's place.
 */
const BUNDLE = /blob:null\/[0-9a-f-]{36}|app:\/\/\/bundle/g;
/** Line of a stack frame; {@link OWN_PLACE} is in those of the bootstrap, and of what it calls the app through. */
const FRAME = /^\s+at /;
const OWN_PLACE = /\/(?:serve|stateful|evaluate)-[0-9a-f]{16}\.js|ext:deno_node\/async_hooks/;

/** Cleans the stack traces in a text. */
export const withAppFrames = (text: string): string =>
  text.includes("    at ") ? ownLines(text.replace(BUNDLE, "bundle")) : text;

const ownLines = (text: string): string =>
  text.split("\n").filter((line) => !(FRAME.test(line) && OWN_PLACE.test(line))).join("\n");

/** Number of causes that are shown: more causes of causes are a cycle, or a way to fill the log. */
const CAUSES_MAX = 8;

/** Returns the stack of an error, with those of its causes; of a thrown value that is no error, its text. */
export function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  let text = error.stack ?? "";
  let cause = error.cause;
  for (let causes = 0; cause !== undefined && causes < CAUSES_MAX; causes++) {
    text += `\nCaused by: ${cause instanceof Error ? cause.stack ?? String(cause) : String(cause)}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return withAppFrames(text);
}
