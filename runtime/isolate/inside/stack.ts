/** Stack traces as an app's author can use them: places in the bundle, without the bootstrap around it. */

/** The bundle is imported from an address that says nothing. `bundle:3:5` is what runtime/bundle/ tells as a module. */
const BUNDLE = /blob:null\/[0-9a-f-]{36}/g;
/** Frames of the bootstrap, and of what it calls the app through. */
const OWN_FRAME = /\n\s+at [^\n]*(?:\/(?:serve|evaluate)-[0-9a-f]{16}\.js|ext:deno_node\/async_hooks)[^\n]*/g;

/** A text with stack traces in it. */
export const appFrames = (text: string): string =>
  text.includes("    at ") ? text.replace(BUNDLE, "bundle").replace(OWN_FRAME, "") : text;

/** The stack of what was thrown; the thing itself where it is no error. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? appFrames(error.stack ?? "") : String(error);
