/**
 * An app's outgoing fetch, as part of the request's trace: a span where the request is recorded, and a `traceparent`
 * wherever there is a trace to go on with.
 *
 * T1  Of the address only host and port are told: paths and queries of other people's APIs hold keys.
 * T2  A `traceparent` that the app has set names the parent, where it is one of this trace (inside/opentelemetry.ts
 *     sets it for the app's own span); any other is the app's, and stays.
 */
import { failureCode, type Span, SPAN_KIND, traceContextOf, withContext } from "../telemetry/mod.ts";
import type { IsolateCall } from "./call.ts";
import type { OutgoingRequest } from "./outgoing_http.ts";

/** Characters of a method that are told: an app may make up methods. */
const METHOD_CHARACTERS_MAX = 16;

/** Begins the span of a fetch, and names the trace in its headers. */
export function beginFetch(
  call: Pick<IsolateCall, "span" | "request">,
  request: OutgoingRequest,
): { readonly step: Span | undefined; readonly request: OutgoingRequest } {
  const own = traceContextOf(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const isOurs = own !== null && own.traceId === call.span?.traceId;
  const name = request.method.slice(0, METHOD_CHARACTERS_MAX);
  const step = call.span?.child(name, SPAN_KIND.client, isOurs ? own : call.span);
  if (step !== undefined) describe(step, request);
  if (own !== null && !isOurs) return { step, request };
  const context = step ?? call.span ?? traceContextOf(call.request.headers);
  if (context === null) return { step, request };
  return { step, request: { ...request, headers: withContext(request.headers, context) } };
}

/** Ends the span of a fetch with the head of the answer. */
export function endFetch<T extends { readonly response: { readonly status: number } }>(
  step: Span,
  following: Promise<T>,
): Promise<T> {
  const told = following.then((answer) => {
    step.set("http.response.status_code", answer.response.status);
    return answer;
  });
  return step.around(told, failureCode);
}

function describe(step: Span, { method, url }: OutgoingRequest): void {
  step.set("http.request.method", method.slice(0, METHOD_CHARACTERS_MAX));
  if (!URL.canParse(url)) return;
  const { hostname, port, protocol } = new URL(url);
  step.set("server.address", hostname);
  step.set("server.port", port === "" ? (protocol === "https:" ? 443 : 80) : Number(port));
}
