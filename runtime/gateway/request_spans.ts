/**
 * What the spans of a request say, by the semantic conventions of HTTP, FaaS and databases. Each function takes a
 * span that may not be there: a request that is not recorded passes through here and nothing happens.
 *
 *   GET /shop/*           server   where it arrived, and again at each site that it was forwarded to
 *   ├ forward cloud       client   the way to the next site, until the head of its answer
 *   ├ session carry       internal attach: how the session came here
 *   └ shop fetch          internal the isolate's call, until the head of its answer
 *     ├ get users         client   a call of the store
 *     ├ GET               client   an outgoing fetch
 *     └ gate              internal what the answer waits for until it is on disk
 *
 * N1  Names and values come from what the platform or a deploy has chosen, not from what a client sent: a method
 *     that is none of HTTP's is `_OTHER`; of a URL only the path is told, for its query may hold a token.
 */
import type { AttachedSession } from "../../store/api/api.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import { failureCode, formatTraceparent, type Span, SPAN_KIND } from "../telemetry/mod.ts";

/** The methods that are told by name. */
export const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
/** A path longer than this says no more. */
const PATH_CHARACTERS_MAX = 512;

/** A method as spans and metrics name it (N1). */
export const knownMethod = (method: string): string => METHODS.includes(method) ? method : "_OTHER";

/** The first thing that is known of a request at a site. */
export function describeRequest(
  span: Span | undefined,
  request: { readonly method: string; readonly url: string },
  site: string,
): void {
  if (span === undefined) return;
  const method = knownMethod(request.method);
  const [path = ""] = /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(request.url)?.slice(1) ?? [];
  span.name = method === "_OTHER" ? "HTTP" : method;
  span.set("http.request.method", method).set("url.path", path.slice(0, PATH_CHARACTERS_MAX) || "/");
  span.set("url.scheme", /^(https|wss):/i.test(request.url) ? "https" : "http").set("sojourn.site", site);
}

/** Its app is known: a name that requests for one thing share. */
export function describeApp(span: Span | undefined, version: LiveVersion): void {
  if (span === undefined) return;
  const route = `/${version.app}/*`;
  if (span.kind === SPAN_KIND.server) span.name = `${span.name} ${route}`;
  span.set("http.route", route).set("sojourn.app", version.app);
}

/** Its answer is known. */
export function endRequest(span: Span | undefined, status: number, problem: string | null): void {
  if (span === undefined) return;
  span.set("http.response.status_code", status);
  if (status >= 500) span.fail(problem ?? String(status));
  span.end();
}

/** Attaching a session: `sojourn.handoff` says how it came here. At once where it needs nothing. */
export function attachTraced(
  span: Span | undefined,
  attach: (trace: string) => AttachedSession | Promise<AttachedSession>,
): AttachedSession | Promise<AttachedSession> {
  const step = span?.child("session");
  if (step === undefined) return attach("");
  const attached = Promise.try(attach, formatTraceparent(step)).then((session) => {
    step.name = `session ${session.how}`;
    step.set("sojourn.handoff", session.how);
    if (session.how === "carry") {
      step.set("sojourn.handoff.rows", session.carried.rows);
      step.set("sojourn.handoff.bytes", session.carried.bytes);
    }
    return session;
  });
  return step.around(attached, failureCode);
}

/** The isolate's call. */
export function beginInvoke(
  span: Span | undefined,
  version: LiveVersion,
): Span | undefined {
  return span?.child(`${version.app} fetch`)
    ?.set("faas.name", version.app)
    .set("faas.version", version.version)
    .set("faas.trigger", "http");
}

/** Its answer, or what became of it. */
export function endInvoke(
  call: Span | undefined,
  answer: { readonly kind: string; readonly code?: string },
): void {
  if (call === undefined) return;
  if (answer.kind === "error") call.fail(answer.code ?? "app_error");
  call.end();
}

/** Waiting for the disk. */
export function gateTraced(call: Span | undefined, gate: Promise<void>): Promise<void> {
  const step = call?.child("gate");
  return step === undefined ? gate : step.around(gate, failureCode);
}
