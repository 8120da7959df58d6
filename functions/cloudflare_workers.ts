/**
 * The module "cloudflare:workers" of an app: the parts of it that mean something here. A name that is not among them
 * (`DurableObject`, `WorkflowEntrypoint`, `RpcTarget`, …) is refused by the bundler, with its place.
 */
import { CONTEXT_SLOT, type ContextSlot } from "./context.ts";
import { AppError } from "./vocabulary/errors.ts";

export { env } from "./context.ts";
export { WorkerEntrypoint } from "./worker_entrypoint.ts";

/**
 * Keeps the running request's store and session usable until the promise settles, as `ctx.waitUntil`.
 *
 * @throws AppError `no_request` where no request runs.
 */
export function waitUntil(promise: Promise<unknown>): void {
  const slot = (globalThis as { [CONTEXT_SLOT]?: ContextSlot })[CONTEXT_SLOT];
  const keep = slot?.waitUntil?.();
  if (keep === undefined) {
    throw new AppError("no_request", "waitUntil works only while a request runs, not when the module loads");
  }
  keep(promise);
}
