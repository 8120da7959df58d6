import assert from "node:assert/strict";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import { type KeyPart, packKey } from "../../store/model/key.ts";
import type { Span, SpanSink } from "../telemetry/span.ts";
import { SamplingTracer } from "../telemetry/tracer.ts";
import { storeTraced } from "./store_spans.ts";

Deno.test("a span of a store call names the table of its key, and nothing else of that or of a value (SSP1)", async () => {
  const spans: Span[] = [];
  const sink: SpanSink = { nowMs: () => 0, ended: (span) => void spans.push(span) };
  const tracer = new SamplingTracer(sink, { ratio: 1, followCallers: true, tracesPerSecondMax: 9 }, () => 0);
  const call = tracer.arrived(new Headers());
  assert.ok(call);
  const store = storeTraced({
    get: () => Promise.resolve([null]),
    list: () => Promise.resolve({ rows: [] }),
    commit: () => Promise.resolve({ ok: true }),
  } as unknown as StoreClient, call);
  const rows: [parts: KeyPart[], name: string][] = [
    [["t", "notes", "hidden"], " notes"],
    [["i", "notes", "by-hidden", "hidden"], " notes"],
    [["root", "t", "orders", "hidden"], " orders"],
    [["kv", "hidden", "hidden"], " kv"],
    [["hidden", "hidden"], ""],
    [[7, "hidden"], ""],
  ];
  const value = new TextEncoder().encode("hidden");
  for (const [parts, name] of rows) {
    const key = packKey(parts);
    await store.get([key], "session");
    await store.list({
      start: key,
      end: `${key}\xff` as typeof key,
      limit: 1,
      reverse: false,
      level: "session",
    });
    await store.commit([], [{ kind: "set", key, value }] as never);
    assert.deepEqual(
      spans.slice(-3).map((span) => span.name),
      ["get", "list", "commit"].map((each) => each + name),
    );
  }
  for (const span of spans) assert.doesNotMatch(JSON.stringify([span.name, span.attributes]), /hidden/);
});
