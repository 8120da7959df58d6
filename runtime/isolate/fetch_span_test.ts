import assert from "node:assert/strict";
import type { Span } from "../telemetry/mod.ts";
import { SamplingTracer } from "../telemetry/tracer.ts";
import { beginFetch } from "./fetch_span.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = `00-${TRACE}-b7ad6b7169203331-01`;

/** A request that is recorded. */
function recorded(): { readonly span: Span; readonly request: never } {
  const tracer = new SamplingTracer(
    { nowMs: () => 0, ended: () => {} },
    { ratio: 1, followCallers: true, tracesPerSecondMax: 100 },
    () => 0.5,
  );
  const span = tracer.arrived(new Headers({ traceparent: CALLER }));
  assert.ok(span);
  return { span, request: { headers: new Headers({ traceparent: CALLER }) } as never };
}

const outgoing = (url: string, headers: [string, string][] = []) => ({
  method: "GET",
  url,
  headers,
  body: null,
  signal: new AbortController().signal,
});

const parentOf = ({ headers }: { readonly headers: readonly (readonly [string, string])[] }) =>
  headers.filter(([name]) => name.toLowerCase() === "traceparent").map(([, value]) => value);

Deno.test("of a fetch's address a span has host and port alone (T1)", () => {
  const { step } = beginFetch(recorded(), outgoing("https://user:pass@api.test/v1/k3y?token=k3y#k3y"));
  assert.ok(step);
  assert.deepEqual([step.name, ...step.attributes], [
    "GET",
    ...["http.request.method", "GET", "server.address", "api.test", "server.port", 443],
  ]);
});

Deno.test("a fetch goes on with the trace of its request, below the app's own span, and a foreign trace stays (T2)", () => {
  const call = recorded();
  const plain = beginFetch(call, outgoing("http://api.test/"));
  assert.equal(plain.step?.parentId, call.span.spanId);
  assert.deepEqual(parentOf(plain.request), [`00-${TRACE}-${plain.step?.spanId}-01`]);

  const own = `00-${TRACE}-00000000000000aa-01`;
  const below = beginFetch(call, outgoing("http://api.test/", [["traceparent", own]]));
  assert.equal(below.step?.parentId, "00000000000000aa");
  assert.deepEqual(parentOf(below.request), [`00-${TRACE}-${below.step?.spanId}-01`]);

  const foreign = `00-${"1".repeat(32)}-00000000000000bb-01`;
  const beside = beginFetch(call, outgoing("http://api.test/", [["traceparent", foreign]]));
  assert.equal(beside.step?.parentId, call.span.spanId);
  assert.deepEqual(parentOf(beside.request), [foreign]);

  const unrecorded = beginFetch({ request: call.request } as never, outgoing("http://api.test/"));
  assert.equal(unrecorded.step, undefined);
  assert.deepEqual(parentOf(unrecorded.request), [CALLER]);
});
