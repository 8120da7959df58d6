/** The node built-ins that a function may import: they compute, and need no permission. */

const ALLOWED: ReadonlySet<string> = new Set([
  "assert",
  "assert/strict",
  "async_hooks",
  "buffer",
  "crypto",
  "diagnostics_channel",
  "events",
  "path",
  "path/posix",
  "path/win32",
  "querystring",
  "stream",
  "stream/consumers",
  "stream/promises",
  "stream/web",
  "string_decoder",
  "timers",
  "timers/promises",
  "url",
  "util",
  "util/types",
  "zlib",
]);

/** Reports whether an import of this specifier may stay in a bundle. */
export const isAllowedBuiltin = (specifier: string): boolean => ALLOWED.has(specifier.replace(/^node:/, ""));

/** Names of the built-ins, for messages. */
export const allowedBuiltins: readonly string[] = [...ALLOWED].map((name) => `node:${name}`);
