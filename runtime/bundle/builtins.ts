/** The node built-ins that a function may import: they compute, and need no permission. */

const ALLOWED: ReadonlySet<string> = new Set([
  "assert",
  "assert/strict",
  "async_hooks",
  "buffer",
  "crypto",
  "events",
  "path",
  "path/posix",
  "querystring",
  "stream",
  "stream/promises",
  "stream/web",
  "string_decoder",
  "url",
  "util",
  "util/types",
]);

/** Whether an import of this specifier may stay in a bundle. */
export const isAllowedBuiltin = (specifier: string): boolean => ALLOWED.has(specifier.replace(/^node:/, ""));

/** The names, for messages. */
export const allowedBuiltins: readonly string[] = [...ALLOWED].map((name) => `node:${name}`);
