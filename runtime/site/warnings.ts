/** Notes of the store that an operator should see. */

/** Names of the notes that are warnings. */
export const WARNINGS: ReadonlySet<string> = new Set([
  "clock_ahead",
  "clock_doubted",
  "child_removed",
  "beat_stranger",
  "packet_stranger",
  "owner_unknown",
  "message_malformed",
  "unexpected_message",
  "numbers_exhausted",
  "number_unknown",
  "owners_unreachable",
  "ward_not_retaken",
  "row_damaged",
  "disk_went_back",
  "adoption_waits",
]);
