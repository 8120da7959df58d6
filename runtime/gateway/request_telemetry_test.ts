import assert from "node:assert/strict";
import { encodeSpans } from "../telemetry/otlp.ts";
import type { Span, SpanSink } from "../telemetry/span.ts";
import { SamplingTracer } from "../telemetry/tracer.ts";
import { NO_CONTENT } from "./arrival.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { RequestTelemetry } from "./request_telemetry.ts";

class Recorded implements SpanSink {
  readonly spans: Span[] = [];
  nowMs = () => 1_700_000_000_000;
  ended = (span: Span) => void this.spans.push(span);
}

Deno.test("what is recorded of a request has its path and its outcome, and no header, query, token or address of it (request_spans.ts RSP1)", () => {
  const sink = new Recorded();
  const options = { ratio: 1, followCallers: true, tracesPerSecondMax: 100 };
  const telemetry = new RequestTelemetry("here", new SamplingTracer(sink, options, () => 0));
  const request = new Request(
    "http://user-hidden:pass-hidden@h.example/app/path?key=query-hidden#hash-hidden",
    {
      method: "POST",
      headers: {
        ...{ cookie: "sojourn_session=cookie-hidden", authorization: "Bearer token-hidden" },
        ...{ "x-own": "header-hidden", "sojourn-session": "session-hidden", "x-forwarded-for": "10.9.8.7" },
      },
      body: "body-hidden",
    },
  );
  for (const error of [undefined, new Problem("disk_failed", "message-hidden"), new Error("error-hidden")]) {
    const span = telemetry.arrived(request);
    assert.ok(span);
    const arrival = {
      ...{ method: "POST", url: request.url, headers: request.headers, content: NO_CONTENT, span },
      remote: "10.9.8.7",
    };
    telemetry.answered(
      arrival,
      new Response("answer-hidden", { status: error === undefined ? 200 : 503 }),
      0,
      error,
    );
  }
  assert.equal(sink.spans.length, 3);
  const told = encodeSpans({ "service.name": "sojourn" }, sink.spans);
  assert.match(told, /\/app\/path/);
  assert.match(told, /disk_failed/);
  assert.doesNotMatch(told, /hidden|10\.9\.8\.7/);
  const odd = telemetry.arrived(new Request("http://h/app", { method: "METHOD-HIDDEN" }));
  assert.deepEqual([odd?.name, odd?.attributes.slice(0, 2)], ["HTTP", ["http.request.method", "_OTHER"]]);
});
