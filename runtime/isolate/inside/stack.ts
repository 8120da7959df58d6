/** Stack traces as an app's author can use them: places in the bundle, without the bootstrap around it. */

/** The bundle is imported from an address that says nothing. `bundle:3:5` is what runtime/bundle/ tells as a module. */
const BUNDLE = /blob:null\/[0-9a-f-]{36}|app:\/\/\/bundle/g;
/** A frame, and where one of the bootstrap is, or of what it calls the app through. */
const FRAME = /^\s+at /;
const OWN_PLACE = /\/(?:serve|stateful|evaluate)-[0-9a-f]{16}\.js|ext:deno_node\/async_hooks/;

/** A text with stack traces in it. */
export const withAppFrames = (text: string): string =>
  text.includes("    at ") ? ownLines(text.replace(BUNDLE, "bundle")) : text;

const ownLines = (text: string): string =>
  text.split("\n").filter((line) => !(FRAME.test(line) && OWN_PLACE.test(line))).join("\n");

/** More causes of causes are a cycle, or a way to fill the log. */
const CAUSES_MAX = 8;

/** The stack of what was thrown, with those of its causes; the thing itself where it is no error. */
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
