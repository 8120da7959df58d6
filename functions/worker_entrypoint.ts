/**
 * `WorkerEntrypoint`, for modules that import it from "cloudflare:workers" (cloudflare_workers.ts).
 *
 * This file is in every bundle that uses it and in the bootstrap, which knows the class by a registered symbol.
 */
import type { AppContext } from "./define.ts";

/** Marks prototypes of the class, in whichever copy of this module. */
export const WORKER_ENTRYPOINT: unique symbol = Symbol.for("sojourn.worker_entrypoint") as never;

/** A default export as a class: the platform makes one object for each request. */
export abstract class WorkerEntrypoint<Env = unknown> {
  /** The request's context. */
  protected readonly ctx: AppContext;
  /** The request's env. */
  protected readonly env: Env;

  constructor(ctx: AppContext, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }

  /** Marks what it is. */
  get [WORKER_ENTRYPOINT](): true {
    return true;
  }
}
