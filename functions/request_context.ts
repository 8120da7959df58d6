/**
 * The bootstrap's side of context.ts: runs a request's work so that code in it finds its env.
 *
 * Life cycle: the bootstrap calls `installContext` once, before it loads an app; then `runWithEnv` per request.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { CONTEXT_SLOT, type ContextSlot } from "./context.ts";
import type { BaseEnv } from "./define.ts";

const requests = new AsyncLocalStorage<BaseEnv>();

/** Fills the slot that every copy of `sojourn` in this isolate reads. Calling it again changes nothing. */
export function installContext(): void {
  const slot: ContextSlot = Object.freeze({ current: () => requests.getStore() });
  if (CONTEXT_SLOT in globalThis) return;
  Object.defineProperty(globalThis, CONTEXT_SLOT, { value: slot });
}

/** Runs `work` for the request that `env` belongs to, and all that it starts. */
export const runWithEnv = <T>(env: BaseEnv, work: () => T): T => requests.run(env, work);

/** The env of the running request; undefined outside one (module load). */
export const currentEnv = (): BaseEnv | undefined => requests.getStore();
