/**
 * What the executor takes of Deno itself, captured before any app code runs and before the globals are replaced.
 *
 * SC1  The drain needs Deno's internals: there is one Deno build, which logs are pinned to, and a process in which
 *      they are missing does not start.
 */

interface Core {
  processTicksAndRejections(): void;
}

const found = (Deno as unknown as Record<symbol, { readonly core?: Core } | undefined>)[
  (Deno as unknown as { readonly internal: symbol }).internal
]?.core;
if (typeof found?.processTicksAndRejections !== "function") {
  throw new Error("this Deno has no core to drain microtasks with");
}
const core: Core = found;

/** Runs all microtasks, ticks of node's libraries, and what is told of rejections, until none is left. */
export const drain = (): void => core.processTicksAndRejections();

const { setTimeout, clearTimeout, setImmediate } = globalThis;
const now = Date.now.bind(Date);

/** Milliseconds since 1970. */
export const nowMs = (): number => now();

/** Calls back in a macrotask of its own. */
export const schedule = (callback: () => void): void => void setImmediate(callback);

/** Calls back after a time; what is returned prevents it. */
export function after(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}
