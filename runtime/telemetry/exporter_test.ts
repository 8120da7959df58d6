import assert from "node:assert/strict";
import { Exporter, type ExportOptions } from "./exporter.ts";
import { SamplingTracer } from "./tracer.ts";

const OPTIONS: ExportOptions = {
  traces: { url: "http://collector.test/v1/traces", headers: { "x-key": "hidden" } },
  metrics: null,
  timeoutMs: 1_000,
  delayMs: 60_000,
  batchSpansMax: 4,
  queueSpansMax: 10,
  metricsEveryMs: 60_000,
};

function setUp(answer: () => Response | Promise<Response>, options: Partial<ExportOptions> = {}) {
  const posts: { url: string; headers: Headers; body: string }[] = [];
  const notes: string[] = [];
  const exporter = new Exporter({ ...OPTIONS, ...options }, {
    resource: { "service.name": "sojourn" },
    families: () => [],
    note: (event, fields) => notes.push(`${event} ${JSON.stringify(fields)}`),
    fetch: (url, init) => {
      posts.push({ url: String(url), headers: new Headers(init?.headers), body: String(init?.body) });
      return Promise.resolve(answer());
    },
  });
  const tracer = new SamplingTracer(exporter, { ratio: 1, followCallers: true, tracesPerSecondMax: 1_000 });
  const trace = (n: number) => {
    for (let i = 0; i < n; i++) tracer.arrived(new Headers())?.end();
  };
  const spansOf = (body: string): number => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.length;
  return { exporter, posts, notes, trace, spansOf };
}

Deno.test("spans leave in batches, with the collector's headers", async () => {
  const { exporter, posts, trace, spansOf } = setUp(() => new Response("{}"));
  trace(3);
  assert.equal(posts.length, 0);
  trace(3);
  await exporter.close();
  assert.deepEqual(posts.map((post) => spansOf(post.body)), [4, 2]);
  assert.equal(posts[0]?.headers.get("x-key"), "hidden");
  assert.equal(exporter.counts.spansSent, 6);
});

Deno.test("a collector that is away gets the same spans later; what does not fit is dropped and counted (E1, E2)", async () => {
  let away = true;
  const { exporter, posts, notes, trace, spansOf } = setUp(() =>
    new Response("", { status: away ? 503 : 200 })
  );
  trace(15);
  await exporter.flush();
  assert.deepEqual(exporter.counts, { spansSent: 0, spansDropped: 5, batchesFailed: posts.length });
  assert.equal(notes.length, 1, "one line, however often it fails");
  away = false;
  posts.length = 0;
  await exporter.close();
  assert.deepEqual(posts.map((post) => spansOf(post.body)), [4, 4, 2]);
  assert.doesNotMatch(notes.join(), /hidden/); // E3
  assert.match(notes.join(), /otel_export_failed .*otel_export_recovered/s);
});

Deno.test("a batch that is refused is not sent again; the next one is (E2)", async () => {
  let status = 400;
  const { exporter, posts, trace } = setUp(() => new Response("", { status }));
  trace(2);
  await exporter.flush();
  assert.equal(exporter.counts.spansDropped, 2);
  status = 200;
  trace(1);
  await exporter.close();
  assert.equal(posts.length, 2);
  assert.equal(exporter.counts.spansSent, 1);
});

Deno.test("a site that stops does not wait for a collector that never answers", async () => {
  const { exporter, trace } = setUp(() => new Promise<Response>(() => {}));
  trace(1);
  await exporter.close();
});

Deno.test("what can't be read or encoded is dropped and said, and nothing is thrown (E4)", async () => {
  const notes: string[] = [];
  const exporter = new Exporter({ ...OPTIONS, metrics: OPTIONS.traces, metricsEveryMs: 0 }, {
    resource: { "service.name": "sojourn" },
    families: () => {
      throw new Error("a gauge that can't be read");
    },
    note: (event, fields) => notes.push(`${event} ${JSON.stringify(fields)}`),
    fetch: () => Promise.resolve(new Response("{}")),
  });
  await exporter.flush();
  await exporter.close();
  assert.equal(exporter.counts.batchesFailed, 2);
  assert.match(notes.join(), /otel_export_invalid .*a gauge that can't be read/);
});
