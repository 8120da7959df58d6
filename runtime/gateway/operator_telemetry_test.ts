import assert from "node:assert/strict";
import type { Span, SpanSink } from "../telemetry/span.ts";
import { SamplingTracer } from "../telemetry/tracer.ts";
import { OperatorTelemetry } from "./operator_telemetry.ts";

/** Spans that are recorded where one of a hundred requests is. */
function recorded(drawn: number): { readonly telemetry: OperatorTelemetry; readonly spans: Span[] } {
  const spans: Span[] = [];
  const sink: SpanSink = { nowMs: () => 0, ended: (span) => void spans.push(span) };
  const options = { ratio: 0.01, followCallers: true, tracesPerSecondMax: 100 };
  return { telemetry: new OperatorTelemetry("here", new SamplingTracer(sink, options, () => drawn)), spans };
}

async function spansOf(method: string, path: string, drawn: number): Promise<Span[]> {
  const { telemetry, spans } = recorded(drawn);
  const url = `http://h${path}?secret=q`;
  await telemetry.called(new Request(url, { method }), path, () => new Response());
  return spans;
}

Deno.test("a call that changes something is recorded always, and one that reads as rarely as a request (OT1)", async () => {
  const path = "/_sojourn/admin/apps/shop";
  for (const method of ["POST", "PUT", "DELETE"]) {
    assert.equal((await spansOf(method, path, 0.99)).length, 1, method);
  }
  for (const method of ["GET", "HEAD"]) {
    assert.equal((await spansOf(method, path, 0.99)).length, 0, method);
    assert.equal((await spansOf(method, path, 0.001)).length, 1, method);
  }
  assert.deepEqual(await spansOf("POST", "/_sojourn/status", 0), []);
});

Deno.test("of a call's path a span has the subject, and not the names and queries behind it (OT2)", async () => {
  const [span] = await spansOf("PUT", "/_sojourn/admin/secrets/shop/API-KEY", 0.99);
  assert.equal(span?.name, "PUT /_sojourn/admin/secrets");
  const attributes = JSON.stringify(span?.attributes);
  assert.match(attributes, /admin\/secrets/);
  assert.doesNotMatch(attributes, /shop|API-KEY|secret=q/);
});
