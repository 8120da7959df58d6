/**
 * The request's {@link AppContext} where a framework holds it: Hono keeps the third argument of `fetch` as
 * `c.executionCtx`, under a type that knows nothing of sites and sessions. No framework is imported here.
 */
import type { AppContext } from "./define.ts";
import { AppError } from "./vocabulary/errors.ts";

/**
 * Returns the `ctx` of the request that a Hono context belongs to.
 *
 * ```ts
 * import { contextOf } from "sojourn";
 * import { Hono } from "hono";
 *
 * const app = new Hono();
 * app.get("/where", (c) => c.text(contextOf(c).site));
 * ```
 *
 * @throws AppError `no_request` where no site's `ctx` was handed to the framework.
 */
export function contextOf(c: { readonly executionCtx: object }): AppContext {
  const ctx = handedOn(c);
  if (typeof ctx?.site === "string" && typeof ctx.session?.id === "string") return ctx as AppContext;
  throw new AppError(
    "no_request",
    "contextOf found no ctx of a site: pass on all that fetch was given, `app.fetch(request, env, ctx)`",
  );
}

/** Returns the context's `executionCtx`; undefined where Hono's getter throws, as there is none. */
function handedOn(c: { readonly executionCtx: object }): Partial<AppContext> | undefined {
  try {
    return c.executionCtx;
  } catch {
    return undefined;
  }
}
