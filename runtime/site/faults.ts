/**
 * Unexpected exceptions: counted, and logged with their stacks.
 *
 * F1  An exception that is known to concern one connection, or one stateful session, ends that and nothing else.
 * F2  An exception that nothing caught may be anything, a broken invariant as well: the process goes on with nothing
 *     that it might get wrong. Its site stops in order (site.ts, S3).
 */
import { Counter } from "../telemetry/mod.ts";
import type { LogFields, SiteLog } from "./log.ts";

/** Scope that a fault ends. */
export type FaultOf = "session" | "queues" | "site";

/** Counts and logs the faults of a process. */
export class Faults {
  readonly #log: Pick<SiteLog, "line">;
  /** Counter of faults, by what they ended. */
  readonly counter = new Counter({
    name: "site.faults",
    unit: "{fault}",
    description: "Exceptions that should not be, by what they ended: session (one connection of it), site.",
  });
  #unexpected = 0;

  constructor(log: Pick<SiteLog, "line">) {
    this.#log = log;
  }

  /** Records a fault that ends one connection or session (F1). */
  contained(of: FaultOf, error: unknown, fields: LogFields): void {
    this.counter.of([["of", of]]).add();
    this.#log.line("error", "fault", { of, ...fields, error: describe(error) });
  }

  /** Records an exception that nothing caught (F2). */
  unexpected(error: unknown): void {
    this.#unexpected++;
    this.counter.of([["of", "site"]]).add();
    this.#log.line("error", "unexpected", { error: describe(error), says: "the site stops: this is a bug" });
  }

  /** True after an exception with which the process is not to go on. */
  get isBroken(): boolean {
    return this.#unexpected > 0;
  }
}

/** Returns an error's text, with its stack where it has one. */
export const describe = (error: unknown): string =>
  error instanceof Error ? error.stack ?? error.message : String(error);

/** Calls back with exceptions and rejections that nothing caught: by default they would end the process on the spot. */
export function onUnexpected(callback: (error: unknown) => void): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    callback(event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    callback(event.error);
  });
}
