/** Codes of refusals, by what a client that asks a stateful session, or wants to attach to it, is to do next. */

/** Codes of refusals that no later attempt changes by itself. */
export const FOR_GOOD: ReadonlySet<string> = new Set(["app_unknown", "limit_stateful", "not_available"]);

/**
 * Milliseconds within which a home that was lost is taken over, where that is possible; after that its callers are
 * told.
 */
export const REACH_MS_MAX = 15_000;

/**
 * Codes of refusals that pass by themselves: another stateful session that calls is not told of them (router.ts T7).
 */
export const PASSING_CODES: ReadonlySet<string> = new Set([
  "draining",
  "source_unreachable",
  "store_unreachable",
  "owners_unreachable",
  "disk_failed",
]);
