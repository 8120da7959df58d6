/**
 * The request that runs right now, for code that was not handed its `env`: `import { env } from "sojourn"`,
 * `Deno.openKv()`. The isolate's bootstrap provides it; an app's bundle holds its own copy of this module, so
 * the two meet at a symbol on `globalThis`.
 *
 * N1  While a module loads no request runs: every use then throws `no_request`.
 */
import { AppError } from "./errors.ts";

/** What a running request has. */
export interface RunningRequest {
  readonly env: Record<string, unknown>;
  readonly ctx: unknown;
}

/** Answers the request that the calling code runs for. */
export type RunningSource = () => RunningRequest | undefined;

const SOURCE = Symbol.for("sojourn.running");

/** Says, once for an isolate, how to find the running request. */
export function provideRunning(source: RunningSource): void {
  Object.defineProperty(globalThis, SOURCE, { value: source });
}

/**
 * The request that runs right now.
 *
 * @throws AppError `no_request` outside of one. `what` names the use in the message.
 */
export function running(what: string): RunningRequest {
  const source = (globalThis as Record<symbol, unknown>)[SOURCE] as RunningSource | undefined;
  const request = source?.();
  if (request !== undefined) return request;
  throw new AppError("no_request", `${what} works while a request runs, not while a module loads`);
}
