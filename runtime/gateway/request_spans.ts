/**
 * Attributes of a request's spans, by the semantic conventions of HTTP, FaaS and databases. Each function takes a span
 * that may be undefined: for a request that is not recorded nothing happens here.
 *
 *   GET /shop/*           server   where it arrived, and again at each site that it was forwarded to
 *   ├ forward cloud       client   the way to the next site, until the head of its answer
 *   ├ session carry       internal attach: how the session came here
 *   └ shop fetch          internal the isolate's call, until the head of its answer
 *     ├ get users         client   a call of the store
 *     ├ GET               client   an outgoing fetch
 *     └ gate              internal what the answer waits for until it is on disk
 *
 * RSP1  Names and values come from what the platform or a deploy has chosen, not from what a client sent: a method that
 *       is none of HTTP's is `_OTHER`; of a URL only the path is told, for its query may hold a token.
 */
import type { AttachedSession } from "../../store/api/api.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import { failureCode, formatTraceparent, type Span, SPAN_KIND } from "../telemetry/mod.ts";

/** Methods that spans and metrics tell by name. */
export const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
/** Longest path in a span, in characters: a longer one says no more. */
const PATH_CHARACTERS_MAX = 512;

/** Returns a method as spans and metrics name it (RSP1). */
export const knownMethod = (method: string): string => METHODS.includes(method) ? method : "_OTHER";

/** Describes a request as it arrives at a site: by its method and path. */
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

/** Describes a request whose app is known: the span gets a name that requests for one thing share. */
export function describeApp(span: Span | undefined, version: LiveVersion): void {
  if (span === undefined) return;
  const route = `/${version.app}/*`;
  if (span.kind === SPAN_KIND.server) span.name = `${span.name} ${route}`;
  span.set("http.route", route).set("sojourn.app", version.app);
}

/** Ends the span of a request that has its answer. */
export function endRequest(span: Span | undefined, status: number, problem: string | null): void {
  if (span === undefined) return;
  span.set("http.response.status_code", status);
  if (status >= 500) span.fail(problem ?? String(status));
  span.end();
}

/**
 * Attaches a session within a span: `sojourn.handoff` says how the session came here. Synchronous where attaching needs
 * no wait.
 */
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

/** Begins the span of the isolate's call. */
export function beginInvoke(
  span: Span | undefined,
  version: LiveVersion,
): Span | undefined {
  return span?.child(`${version.app} fetch`)
    ?.set("faas.name", version.app)
    .set("faas.version", version.version)
    .set("faas.trigger", "http");
}

/** Ends the span of the isolate's call, with its answer or its failure. */
export function endInvoke(
  call: Span | undefined,
  answer: { readonly kind: string; readonly code?: string },
): void {
  if (call === undefined) return;
  if (answer.kind === "error") call.fail(answer.code ?? "app_error");
  call.end();
}

/** Records the wait for the disk. */
export function gateTraced(call: Span | undefined, gate: Promise<void>): Promise<void> {
  const step = call?.child("gate");
  return step === undefined ? gate : step.around(gate, failureCode);
}
