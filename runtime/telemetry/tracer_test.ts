import assert from "node:assert/strict";
import { encodeSpans } from "./otlp.ts";
import { failureCode, type Span, SPAN_KIND, SPANS_MAX, type SpanSink } from "./span.ts";
import { formatTraceparent, parseTraceparent, traceContextOf } from "./trace_context.ts";
import { INERT, SamplingTracer } from "./tracer.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const caller = (flags: string) => `00-${TRACE}-${PARENT}-${flags}`;

class Recorded implements SpanSink {
  readonly spans: Span[] = [];
  atMs = 1_700_000_000_000;
  nowMs = () => this.atMs;
  ended = (span: Span) => void this.spans.push(span);
}

const tracer = (
  sink: SpanSink,
  options: { ratio?: number; followCallers?: boolean; tracesPerSecondMax?: number } = {},
  random = () => 0.5,
) => new SamplingTracer(sink, { ratio: 0, followCallers: true, tracesPerSecondMax: 100, ...options }, random);

Deno.test("a traceparent is read as the standard has it, and anything else is none (T1)", () => {
  const rows: [string, string | null][] = [
    [caller("01"), "sampled"],
    [caller("00"), "not"],
    [caller("03"), "sampled"],
    [`cc-${TRACE}-${PARENT}-01-what-comes`, "sampled"],
    [`${caller("01")}-more`, null],
    [`ff-${TRACE}-${PARENT}-01`, null],
    [`00-${"0".repeat(32)}-${PARENT}-01`, null],
    [`00-${TRACE}-${"0".repeat(16)}-01`, null],
    [caller("01").toUpperCase(), null],
    ["", null],
    [caller("01").repeat(9), null],
  ];
  for (const [text, expected] of rows) {
    const read = parseTraceparent(text);
    assert.equal(read === null ? null : read.sampled ? "sampled" : "not", expected, text);
    if (read !== null) assert.equal(read.traceId, TRACE);
  }
  assert.equal(parseTraceparent(caller("01"), "a=1")?.state, "a=1");
  assert.equal(parseTraceparent(caller("01"), `a=${"x".repeat(600)}`)?.state, "");
});

Deno.test("a caller's decision is followed; without one chance decides (D1)", () => {
  const rows: [string | null, number, number, boolean][] = [
    // caller, ratio, drawn, recorded
    [caller("01"), 0, 0.5, true],
    [caller("00"), 1, 0.5, false],
    [null, 0.4, 0.5, false],
    [null, 0.6, 0.5, true],
    [null, 0, 0, false],
    [null, 1, 0.999, true],
    ["garbage", 1, 0.5, true],
  ];
  for (const [parent, ratio, drawn, recorded] of rows) {
    const headers = new Headers(parent === null ? {} : { traceparent: parent });
    const span = tracer(new Recorded(), { ratio }, () => drawn).arrived(headers);
    assert.equal(span !== undefined, recorded, `${parent} at ${ratio}, drawn ${drawn}`);
    if (parent?.endsWith("01") && span) assert.deepEqual([span.traceId, span.parentId], [TRACE, PARENT]);
    else if (span) assert.deepEqual([span.parentId, span.traceId === TRACE], ["", false]);
  }
});

Deno.test("a site that does not follow callers begins traces of its own, and says no further on", () => {
  const one = tracer(new Recorded(), { followCallers: false });
  const headers: [string, string][] = [["traceparent", caller("01")], ["accept", "*/*"]];
  assert.equal(one.arrived(new Headers(headers)), undefined);
  assert.deepEqual(one.passed(headers, undefined), [["accept", "*/*"], ["traceparent", caller("00")]]);
  const all = tracer(new Recorded(), { followCallers: false, ratio: 1 });
  assert.notEqual(all.arrived(new Headers(headers))?.traceId, TRACE);
});

Deno.test("callers cannot make a site record more than so many traces a second (D2)", () => {
  const sink = new Recorded();
  const one = tracer(sink, { tracesPerSecondMax: 3 });
  const ask = () => one.arrived(new Headers({ traceparent: caller("01") })) !== undefined;
  assert.deepEqual([ask(), ask(), ask(), ask(), ask()], [true, true, true, false, false]);
  assert.equal(one.limited, 2);
  const pairs: [string, string][] = [["traceparent", caller("01")]];
  assert.ok(one.forwarded(pairs) !== undefined, "another site has decided already");
  sink.atMs += 1_000;
  assert.equal(ask(), true);
});

Deno.test("a request over a link is recorded exactly if the site before does", () => {
  const one = tracer(new Recorded(), { ratio: 1 });
  assert.equal(one.forwarded([["accept", "*/*"]]), undefined);
  assert.equal(one.forwarded([["traceparent", caller("00")]]), undefined);
  const span = one.forwarded([["traceparent", caller("01")], ["tracestate", "v=1"]]);
  const next = traceContextOf(one.passed([["traceparent", caller("01")]], span));
  assert.deepEqual(next, { traceId: TRACE, spanId: span?.spanId, sampled: true, state: "v=1" });
});

Deno.test("a tracer that is off reads nothing and gives nothing (D3)", () => {
  const headers = {
    get: (): string => {
      throw new Error("was read");
    },
  };
  assert.equal(INERT.arrived(headers), undefined);
  const pairs: [string, string][] = [["traceparent", caller("01")]];
  assert.equal(INERT.passed(pairs, undefined), pairs);
});

Deno.test("spans leave as OTLP has them: parents, kinds, times, errors by code alone; after its end one changes no more (span.ts S3)", async () => {
  const sink = new Recorded();
  const first = tracer(sink, { ratio: 1 }).arrived(new Headers());
  assert.ok(first !== undefined);
  const child = first.child("get users", SPAN_KIND.client)?.set("n", 2).set("n", 3);
  sink.atMs += 1.5;
  await assert.rejects(
    child?.around(
      Promise.reject(Object.assign(new Error("Ann's secret"), { code: "row_invalid" })),
      (error) => (error as { code: string }).code,
    ) ?? Promise.resolve(),
  );
  first.end();
  first.set("late", 1).end();
  const text = encodeSpans({ "service.name": "sojourn" }, sink.spans);
  assert.doesNotMatch(text, /secret|late/);
  const { spans: [inner, outer] } = JSON.parse(text).resourceSpans[0].scopeSpans[0];
  assert.equal(inner.parentSpanId, outer.spanId);
  assert.equal(inner.traceId, outer.traceId);
  assert.equal("parentSpanId" in outer, false);
  assert.deepEqual([inner.kind, outer.kind], [3, 2]);
  assert.equal(BigInt(inner.endTimeUnixNano) - BigInt(inner.startTimeUnixNano), 1_500_000n);
  assert.deepEqual(inner.status, { code: 2 });
  assert.deepEqual(inner.attributes, [
    { key: "n", value: { intValue: "3" } },
    { key: "error.type", value: { stringValue: "row_invalid" } },
  ]);
  assert.equal(formatTraceparent(first), `00-${first.traceId}-${first.spanId}-01`);
});

Deno.test("a failure is named by its code, or by its class, and never by what it says (span.ts S1)", () => {
  const secret = "Ann's secret";
  const rows: readonly (readonly [error: unknown, code: string])[] = [
    [Object.assign(new Error(secret), { code: "row_invalid" }), "row_invalid"],
    [Object.assign(new Error(secret), { code: secret }), "Error"],
    [new TypeError(secret), "TypeError"],
    [Object.assign(new Error(secret), { name: secret }), "_OTHER"],
    [secret, "_OTHER"],
  ];
  for (const [error, code] of rows) assert.equal(failureCode(error), code);
});

Deno.test("a trace takes a bounded number of spans, and says how many it left out (S2)", () => {
  const sink = new Recorded();
  const first = tracer(sink, { ratio: 1 }).arrived(new Headers());
  for (let i = 0; i < SPANS_MAX + 10; i++) first?.child("x")?.end();
  first?.end();
  assert.equal(sink.spans.length, SPANS_MAX);
  assert.deepEqual(first?.attributes.slice(-2), ["sojourn.spans.dropped", 11]);
});
