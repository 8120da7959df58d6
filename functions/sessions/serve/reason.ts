/** Reasons for which stateful sessions stand still, and their texts: in the words of their apps' sources, and for logs. */
import type { Act, Parked } from "../turn/mod.ts";

/** Reason for which a stateful session stands still. */
export type Reason = Pick<Parked, "message" | "detail"> & {
  readonly code: Parked["code"] | "isolate_killed";
};

/** Returns a reason with all its texts replaced by what `told` makes of them: places mapped, secrets taken out. */
export async function toldTexts(reason: Reason, told: (text: string) => Promise<string>): Promise<Reason> {
  const map = async (value: unknown): Promise<unknown> => {
    if (typeof value === "string") return await told(value);
    if (Array.isArray(value)) return await Promise.all(value.map(map));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      await Promise.all(Object.entries(value).map(async ([name, each]) => [name, await map(each)] as const)),
    );
  };
  return {
    code: reason.code,
    message: await told(reason.message),
    detail: await map(reason.detail) as Record<string, unknown>,
  };
}

/**
 * Returns what a replay did otherwise than its log says, for the app's log: a line each for the entry, what the replay made of it, and each act with its place in the app; "" for other
 * reasons.
 */
export function difference(
  { code, detail: { logged, replayed, did } }: Pick<Reason, "code" | "detail">,
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
