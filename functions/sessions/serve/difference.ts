/** Text of what a replay did otherwise than its log says, for the app's log. */
import type { Act } from "../turn/mod.ts";

/**
 * Returns a line each for the entry, what the replay made of it, and each act with its place in the app; "" for other
 * reasons.
 */
export function difference(
  { code, detail: { logged, replayed, did } }: {
    readonly code: string;
    readonly detail: Readonly<Record<string, unknown>>;
  },
): string {
  if (code !== "diverged") return "";
  const acts = Array.isArray(did) ? did as readonly Act[] : [];
  return [
    "",
    `logged: ${JSON.stringify(logged)}`,
    `replayed: ${JSON.stringify(replayed)}`,
    ...acts.map(({ what, at }) => `did: ${what}${at === "" ? "" : `, ${at}`}`),
  ].join("\n");
}
