/**
 * Answers that tell of the platform's errors over HTTP: `application/problem+json` with a code
 * (functions/vocabulary/problem.ts) and what the caller should do next.
 */
import { type ProblemCode, problemRetry, problemStatus } from "../../functions/vocabulary/problem.ts";

/** Seconds that a 503 asks its client to wait: a restarted site is back within this. */
const RETRY_AFTER_S = 1;

/** Returns the answer that tells a client of a problem. */
export function problemResponse(
  code: ProblemCode,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): Response {
  return repeatedProblem(code, detail, more)();
}

/** Returns the answer of a problem that many clients are told of, one after the other: its text is written once. */
export function repeatedProblem(
  code: ProblemCode,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): () => Response {
  const status = problemStatus(code), retry = problemRetry(code);
  const body = JSON.stringify({
    type: "about:blank",
    title: code.replaceAll("_", " "),
    status,
    code,
    detail,
    retry,
    ...more,
  });
  const headers: Record<string, string> = {
    "content-type": "application/problem+json",
    "cache-control": "no-store",
  };
  if (status === 401) {
    headers["www-authenticate"] = code.startsWith("token_") ? `Sojourn-Session error="${code}"` : "Bearer";
  }
  if (status === 503 && retry === "retry") headers["retry-after"] = String(RETRY_AFTER_S);
  return () => new Response(body, { status, headers });
}
