/** Spans that apps make: those that leave, and whose they are. */
import assert from "node:assert/strict";
import { OpenTelemetry, type TracedRequest } from "../../../runtime/isolate/inside/opentelemetry.ts";

const API = Symbol.for("opentelemetry.js.api.1");
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const REQUEST = "b7ad6b7169203331";

interface TestSpan {
  end(): void;
  isRecording(): boolean;
  setAttribute(name: string, value: unknown): TestSpan;
  spanContext(): { traceId: string; spanId: string };
}

interface Api {
  readonly trace: {
    getTracer(): {
      startSpan(name: string, options?: object, context?: unknown): TestSpan;
      startActiveSpan<T>(name: string, run: (span: TestSpan) => T): T;
    };
  };
  readonly context: { active(): { setValue(key: symbol, value: unknown): unknown } };
}

interface Told {
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly attributes: readonly (readonly [string, unknown])[];
}

/** Runs what an app does in a request with this `traceparent`; returns the spans that leave, with their requests. */
function spansOf(traceparent: string | null, run: (api: Api) => void): (Told & { readonly of: number })[] {
  const sent: (Told & { readonly of: number })[] = [];
  const request: TracedRequest = { id: 7, traceparent };
  const held = globalThis as unknown as Record<symbol, Api | undefined>, before = held[API];
  new OpenTelemetry(() => request, (of, text) => sent.push({ ...JSON.parse(text), of })).install();
  try {
    run(held[API] as Api);
  } finally {
    if (before === undefined) delete held[API];
    else held[API] = before;
  }
  return sent;
}

const traceparent = (flags: string) => `00-${TRACE}-${REQUEST}-${flags}`;

Deno.test("an app's spans leave for a request that is recorded, and for no other (A1)", () => {
  const one = (api: Api) => {
    const span = api.trace.getTracer().startSpan("work").setAttribute("a", 1);
    assert.equal(span.spanContext().traceId.length, 32);
    span.end();
    span.end();
  };
  assert.deepEqual(spansOf(traceparent("01"), one).map(({ of, name }) => [of, name]), [[7, "work"]]);
  assert.deepEqual(spansOf(traceparent("00"), one), []);
  assert.deepEqual(spansOf(null, one), []);
});

Deno.test("an app's span is in its request's trace, below what the app says of that, and below the request else (A2)", () => {
  const told = spansOf(traceparent("01"), (api) => {
    const tracer = api.trace.getTracer();
    tracer.startActiveSpan("outer", (outer) => {
      const inner = tracer.startSpan("inner");
      assert.equal(inner.spanContext().traceId, TRACE);
      inner.end();
      tracer.startSpan("root", { root: true }).end();
      outer.end();
    });
    const foreign = {
      spanContext: () => ({ traceId: "1".repeat(32), spanId: "2".repeat(16), traceFlags: 1 }),
    };
    const key = Symbol.for("OpenTelemetry Context Key SPAN");
    tracer.startSpan("foreign", {}, api.context.active().setValue(key, foreign)).end();
  });
  const of = (name: string) => told.find((span) => span.name === name);
  assert.deepEqual(["outer", "inner", "root", "foreign"].map((name) => of(name)?.parentId), [
    REQUEST,
    of("outer")?.spanId,
    REQUEST,
    REQUEST,
  ]);
});

Deno.test("a request sends so many spans of an app, and each so many attributes of so much text (A3)", () => {
  const told = spansOf(traceparent("01"), (api) => {
    for (let i = 0; i < 1_000; i++) {
      const span = api.trace.getTracer().startSpan("n".repeat(10_000));
      if (i === 0) {
        for (let a = 0; a < 1_000; a++) span.setAttribute(`${a}`.padEnd(1_000), "v".repeat(10_000));
      }
      span.end();
    }
  });
  assert.equal(told.length, 256);
  const [first] = told;
  assert.equal(first?.attributes.length, 64);
  assert.equal(first?.name.length, 256);
  for (const [name, value] of first?.attributes ?? []) {
    assert.ok(name.length <= 256 && String(value).length <= 1024);
  }
});
