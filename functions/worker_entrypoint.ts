/**
 * The class `WorkerEntrypoint`, for modules that import it from "cloudflare:workers" (cloudflare_workers.ts).
 *
 * This file is in every bundle that uses it and in the bootstrap, which knows the class by a registered symbol.
 */
import type { AppContext } from "./define.ts";

/** Mark of prototypes of the class, in whichever copy of this module. */
export const WORKER_ENTRYPOINT: unique symbol = Symbol.for("sojourn.worker_entrypoint") as never;

/** Base of a default export that is a class: the platform makes one object for each request. */
export abstract class WorkerEntrypoint<Env = unknown> {
  /** Context of the request. */
  protected readonly ctx: AppContext;
  /** Env of the request. */
  protected readonly env: Env;

  constructor(ctx: AppContext, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }

  /** Mark of the class. */
  get [WORKER_ENTRYPOINT](): true {
    return true;
  }
}
