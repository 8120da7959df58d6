/**
 * Exceptions that should not be: counted, and in the log with where they come from.
 *
 * F1  What is known to concern one connection, or one stateful session, ends that and nothing else.
 * F2  What nobody waited for may be anything, a broken invariant as well: the process goes on with nothing that it might
 *     get wrong. Its site stops in order (site.ts, S3).
 */
import { Counter } from "../telemetry/mod.ts";
import type { LogFields, SiteLog } from "./log.ts";

/** What a fault ends. */
export type FaultOf = "session" | "site";

/** See the file's header. */
export class Faults {
  readonly #log: Pick<SiteLog, "line">;
  /** Counted by what they ended. */
  readonly counter = new Counter({
    name: "site.faults",
    unit: "{fault}",
    description: "Exceptions that should not be, by what they ended: session (one connection of it), site.",
  });
  #unexpected = 0;

  constructor(log: Pick<SiteLog, "line">) {
    this.#log = log;
  }

  /** F1 */
  contained(of: FaultOf, error: unknown, fields: LogFields): void {
    this.counter.of([["of", of]]).add();
    this.#log.line("error", "fault", { of, ...fields, error: describe(error) });
  }

  /** F2 */
  unexpected(error: unknown): void {
    this.#unexpected++;
    this.counter.of([["of", "site"]]).add();
    this.#log.line("error", "unexpected", { error: describe(error), says: "the site stops: this is a bug" });
  }

  /** Whether there was one that the process is not to go on with. */
  get isBroken(): boolean {
    return this.#unexpected > 0;
  }
}

/** An error with where it comes from. */
export const describe = (error: unknown): string =>
  error instanceof Error ? error.stack ?? error.message : String(error);

/** Calls back with what is thrown, or rejected, where nobody waits: by itself it would end the process on the spot. */
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
