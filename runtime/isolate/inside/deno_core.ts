/**
 * The parts of Deno's core that isolates use, captured before any app code runs and before the globals are replaced.
 *
 * DC1  These are Deno's internals: there is one Deno build, which logs are pinned to, and a process in which one of
 *      them is missing does not start.
 */

/** The engine's context of the work that is running: an object that is never changed, only replaced. */
export type AsyncContext = Readonly<Record<string, unknown>>;

interface Core {
  processTicksAndRejections(): void;
  getAsyncContext(): AsyncContext | undefined;
  setAsyncContext(context: AsyncContext | undefined): void;
}

const NEEDED = ["processTicksAndRejections", "getAsyncContext", "setAsyncContext"] as const;

const found = (Deno as unknown as Record<symbol, { readonly core?: Partial<Core> } | undefined>)[
  (Deno as unknown as { readonly internal: symbol }).internal
]?.core;
const missing = NEEDED.filter((name) => typeof found?.[name] !== "function");
if (missing.length > 0) {
  throw new Error(
    `Deno ${Deno.version.deno} has no ${
      missing.join(", ")
    } in its core (DC1): use the version that is pinned`,
  );
}

/** Deno's core, as far as isolates use it. */
export const core = found as Core;
