/**
 * Reasons for which stateful sessions stand still, in the words of their apps' sources: places mapped, secrets taken
 * out.
 */
import type { Reason } from "./hosted_site.ts";

/** Returns a reason with all its texts replaced by what `told` makes of them. */
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
