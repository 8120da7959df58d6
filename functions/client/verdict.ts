/** The verdict on a site's answer: it is the answer for the caller, or the request is worth another attempt. */

/** Verdict on an answer. */
export type AnswerVerdict =
  | { readonly kind: "answer" }
  /** The site serves no clients now, and has not looked at the request. */
  | { readonly kind: "away" }
  /** The site refused the session's tokens: another session is begun. */
  | { readonly kind: "session"; readonly code: string }
  /** The request is worth being sent again, where it may be. */
  | { readonly kind: "later"; readonly waitMs: number; readonly isBusy: boolean };

const ANSWER: AnswerVerdict = { kind: "answer" };
const PROBLEM = "application/problem+json";
/** Wait where the answer names none, as the platform's answers say it. */
const RETRY_AFTER_MS = 1_000;
const RETRY_AFTER_MS_MAX = 10_000;
/** Length of a problem's text: one of the platform has no more; an app's own may. */
const PROBLEM_CHARS_MAX = 100_000;

/** Judges an answer. Its body is left to be read by the caller. */
export async function verdictOf(answer: Response): Promise<AnswerVerdict> {
  const { status, headers } = answer;
  if (status !== 503 && status !== 401) return ANSWER;
  if (headers.get("content-type")?.startsWith(PROBLEM) !== true) return ANSWER;
  const { code, retry } = await problemOf(answer.clone());
  if (status === 401) return code.startsWith("token_") ? { kind: "session", code } : ANSWER;
  if (code === "draining" || code === "not_ready") return { kind: "away" };
  if (retry !== "retry") return ANSWER;
  const seconds = Number(headers.get("retry-after") ?? "");
  const waitMs = seconds > 0 ? Math.min(seconds * 1_000, RETRY_AFTER_MS_MAX) : RETRY_AFTER_MS;
  return { kind: "later", waitMs, isBusy: code === "overloaded" };
}

async function problemOf(answer: Response): Promise<{ code: string; retry: string }> {
  try {
    const text = await answer.text();
    if (text.length > PROBLEM_CHARS_MAX) return { code: "", retry: "" };
    const { code, retry } = JSON.parse(text) as { code?: unknown; retry?: unknown };
    return { code: String(code), retry: String(retry) };
  } catch {
    return { code: "", retry: "" };
  }
}

/**
 * Returns the time that a request was on its way, in milliseconds: the time that it took, less the time that the site
 * says it worked on it; null where the answer came from another site behind this one, or does not say.
 */
export function wayMs(headers: Headers, { ms, site }: { ms: number; site: string | null }): number | null {
  const timing = headers.get("server-timing"), ran = headers.get("sojourn-site");
  if (timing === null || ran === null || (site !== null && ran !== site)) return null;
  let inside = 0;
  for (const name of ["handoff", "store", "app"]) {
    const [, found] = new RegExp(`(?:^|[ ,])${name}(?:;[^,;]*)*;dur=([0-9.]+)`).exec(timing) ?? [];
    if (found === undefined) return null;
    inside += Number(found);
  }
  return Number.isFinite(inside) ? Math.max(0, ms - inside) : null;
}
