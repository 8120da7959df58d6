/** Why whoever wants to attach to a stateful session is refused, as far as that says what to do next. */

/** What no later attempt changes by itself. */
export const FOR_GOOD: ReadonlySet<string> = new Set(["app_unknown", "limit_stateful", "not_available"]);
