/**
 * The parts of Deno that the executor uses, captured before any app code runs and before the globals are replaced.
 */
import { core } from "./deno_core.ts";

/** Runs all microtasks, ticks of node's libraries, and handlers of rejections, until none is left. */
export const drainTasks = (): void => core.processTicksAndRejections();

const { setTimeout, clearTimeout, setImmediate } = globalThis;
const now = Date.now.bind(Date);

/** Returns the time, in milliseconds since 1970. */
export const nowMs = (): number => now();

/** Calls back in a macrotask of its own. */
export const schedule = (callback: () => void): void => void setImmediate(callback);

/** Calls back after a time; the function that is returned prevents it. */
export function after(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}
