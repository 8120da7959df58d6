/** Why whoever asks a stateful session, or wants to attach to it, is refused, as far as that says what to do next. */

/** What no later attempt changes by itself. */
export const FOR_GOOD: ReadonlySet<string> = new Set(["app_unknown", "limit_stateful", "not_available"]);

/** A home that was lost is taken over within this, where that is possible; then its callers are told. */
export const REACH_MS_MAX = 15_000;

/** What passes by itself: another stateful session that calls is not told so (router.ts T7). */
export const PASSING_CODES: ReadonlySet<string> = new Set([
  "draining",
  "source_unreachable",
  "store_unreachable",
  "owners_unreachable",
  "disk_failed",
]);
