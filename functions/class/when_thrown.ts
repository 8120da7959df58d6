/**
 * The treatment of a handler that threw or was killed, as `static whenThrown` of its class says it.
 *
 * Whatever is decided, state, outputs, timers and writes are as they were before the handler
 * (functions/sessions/turn/stateful_session.ts ST3).
 *
 * WT2  A caller that waits for an answer gets the error: requests are always rejected.
 * WT3  Attempts are counted in the log, and there is an end to them: then the session is parked.
 */
import { AppError } from "../vocabulary/errors.ts";
import type { Subject } from "./subject.ts";

/**
 * Treatment of messages, timers, attachments and departures whose handler throws: they are given up, and their sender
 * is told (`"reject"`), tried again a few times and then the session stands still (`"retry"`), or it stands still at
 * once (`"park"`).
 */
export type WhenThrown = "reject" | "retry" | "park";
const POLICIES: readonly WhenThrown[] = ["reject", "retry", "park"];

/** Times that a handler is begun for one subject at most. */
export const HANDLER_ATTEMPTS_MAX = 5;
const BACKOFF_MS = 100;
const BACKOFF_GROWS = 4;

/** Subject whose handler threw the last time. */
export interface Failed {
  readonly subject: Subject;
  /** Number of times that it threw. */
  readonly attempt: number;
}

/** Decision on a handler that threw. */
export type ThrownVerdict =
  | { readonly kind: "reject" }
  | { readonly kind: "again"; readonly attempt: number; readonly afterMs: number }
  | { readonly kind: "park"; readonly attempt: number };

/** Returns the policy of an object's class. @throws AppError `value_invalid` for a class that names no policy. */
export function policyOf(object: object | null): WhenThrown {
  const { whenThrown } = Object(object?.constructor) as { readonly whenThrown?: unknown };
  if (whenThrown === undefined) return "reject";
  const found = POLICIES.find((policy) => policy === whenThrown);
  if (found !== undefined) return found;
  throw new AppError(
    "value_invalid",
    `static whenThrown is ${String(whenThrown)}; it is one of ${POLICIES.join(", ")}`,
  );
}

export const sameSubject = (a: Subject | null, b: Subject | null): boolean =>
  a?.kind === b?.kind && a?.id === b?.id;

/**
 * Decides on a handler that threw (WT2, WT3). `subject` is null where a closure timer threw: there is nothing to try
 * again.
 */
export function verdictOfThrown(
  policy: WhenThrown,
  subject: Subject | null,
  failed: Failed | null,
): ThrownVerdict {
  if (subject?.kind === "request" || policy === "reject") return { kind: "reject" };
  // A session that an operator lets go on has all its attempts again.
  const isNext = failed !== null && sameSubject(failed.subject, subject) &&
    failed.attempt < HANDLER_ATTEMPTS_MAX;
  const attempt = isNext ? failed.attempt + 1 : 1;
  if (policy === "park") return { kind: "park", attempt };
  if (subject === null) return { kind: "reject" };
  if (attempt >= HANDLER_ATTEMPTS_MAX) return { kind: "park", attempt };
  return { kind: "again", attempt, afterMs: BACKOFF_MS * BACKOFF_GROWS ** (attempt - 1) };
}

/** Returns how often the handler was tried, as the log has it. */
export const attemptOf = (verdict: ThrownVerdict): number => verdict.kind === "reject" ? 0 : verdict.attempt;
