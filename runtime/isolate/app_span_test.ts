import assert from "node:assert/strict";
import { SamplingTracer, type Span } from "../telemetry/mod.ts";
import { takeAppSpan } from "./app_span.ts";

const GOOD = {
  spanId: "00000000000000aa",
  parentId: "00000000000000bb",
  name: "work",
  kind: 2,
  beganMs: 1_000,
  endedMs: 1_500,
  failed: true,
  attributes: [["n", 1], ["text", "x"]],
};

function recorded(frames: readonly string[], redact = (text: string) => text): Span[] {
  const spans: Span[] = [];
  const sink = { nowMs: () => 2_000, ended: (span: Span) => void spans.push(span) };
  const call = new SamplingTracer(sink, { ratio: 1, followCallers: true, tracesPerSecondMax: 9 }).arrived(
    new Headers(),
  );
  assert.ok(call !== undefined);
  for (const frame of frames) takeAppSpan(call, frame, redact);
  for (const span of spans) assert.equal(span.traceId, call.traceId);
  return spans;
}

Deno.test("an app's span is taken in with its own id, parent and attributes, within the request's time (A2)", () => {
  const [span, ...more] = recorded([JSON.stringify({ ...GOOD, endedMs: 9e15 })]);
  assert.equal(more.length, 0);
  assert.deepEqual([span?.spanId, span?.parentId, span?.name, span?.kind, span?.failed], [
    "00000000000000aa",
    "00000000000000bb",
    "work",
    3,
    true,
  ]);
  assert.deepEqual(span?.attributes, ["n", 1, "text", "x"]);
  assert.deepEqual([span?.beganMs, span?.endedMs], [2_000, 2_000]);
});

Deno.test("an app's span has no value of a secret in its name or its attributes (A3)", () => {
  const told = {
    ...GOOD,
    name: "work s3cr3t",
    attributes: [["s3cr3t", 1], ["exception.message", "bad s3cr3t"]],
  };
  const [span] = recorded([JSON.stringify(told)], (text) => text.replaceAll("s3cr3t", "[secret KEY]"));
  assert.equal(span?.name, "work [secret KEY]");
  assert.deepEqual(span?.attributes, ["[secret KEY]", 1, "exception.message", "bad [secret KEY]"]);
});

Deno.test("what is no span is dropped (A1)", () => {
  const bad = [
    "",
    "{",
    "null",
    JSON.stringify({ ...GOOD, spanId: "aa" }),
    JSON.stringify({ ...GOOD, parentId: `${GOOD.parentId}\n` }),
    JSON.stringify({ ...GOOD, kind: 9 }),
    JSON.stringify({ ...GOOD, name: "x".repeat(257) }),
    JSON.stringify({ ...GOOD, beganMs: null }),
    JSON.stringify({ ...GOOD, traceId: "a".repeat(32) }),
    JSON.stringify({ ...GOOD, attributes: Array.from({ length: 65 }, (_, i) => [`a${i}`, 1]) }),
    JSON.stringify({ ...GOOD, attributes: [["a", "x".repeat(1025)]] }),
    JSON.stringify({ ...GOOD, attributes: [["a", ["list"]]] }),
  ];
  assert.deepEqual(recorded(bad), []);
});
