import assert from "node:assert/strict";
import { Counter, Histogram, observed, prometheusText } from "../../../runtime/telemetry/mod.ts";
import { SERIES_MAX } from "../../../runtime/telemetry/instruments.ts";
import { readExposition } from "./exposition.ts";

const about = (name: string, unit = "{thing}") => ({ name, unit, description: "What it is." });

Deno.test("metrics keep names, units, labels and values on their way through a page", () => {
  const requests = new Counter({ ...about("requests", "{request}"), description: "a \\ and\na new line" });
  requests.of([["path", 'say "\\hi\n"'], ["weird.name", '{}, ="']]).add(3);
  const durations = new Histogram(about("http.server.request.duration", "s"), [0.1, 1]);
  for (const seconds of [0.05, 0.1, 0.5, 7]) durations.of([]).observe(seconds);
  const page = prometheusText([
    requests,
    durations,
    observed("gauge", about("store.pending.size", "By"), () => 12.5),
    observed("gauge", about("nothing.to.say"), () => []),
  ]);
  const families = readExposition(page);
  assert.deepEqual([...families.keys()], [
    "sojourn_requests_total",
    "sojourn_http_server_request_duration_seconds",
    "sojourn_store_pending_size_bytes",
  ]);
  assert.deepEqual(families.get("sojourn_requests_total")?.samples, [
    { name: "sojourn_requests_total", labels: { path: 'say "\\hi\n"', weird_name: '{}, ="' }, value: 3 },
  ]);
  const counts = families.get("sojourn_http_server_request_duration_seconds")?.samples.map((one) =>
    one.value
  );
  assert.deepEqual(counts, [2, 3, 4, 7.65, 4]);
});

Deno.test("lines of a family stand together below one head, however many series it has (prometheus.ts X1)", () => {
  const both = ["a", "b"].map((name) => new Counter(about(name)));
  for (const path of ["/1", "/2", "/1"]) for (const counter of both) counter.of([["path", path]]).add();
  const lines = prometheusText(both).trimEnd().split("\n").map((line) => line.replace(/[{ ].*? /, " "));
  assert.deepEqual(lines.map((line) => line.split(" ").slice(0, 2).join(" ")), [
    ...["# sojourn_a_total", "# sojourn_a_total", "sojourn_a_total 2", "sojourn_a_total 1"],
    ...["# sojourn_b_total", "# sojourn_b_total", "sojourn_b_total 2", "sojourn_b_total 1"],
  ]);
});

Deno.test("a family takes a bounded number of series, and counts what is beyond in one more (instruments.ts M2)", () => {
  const counter = new Counter(about("names"));
  for (let i = 0; i < SERIES_MAX + 500; i++) counter.of([["name", `name-${i}`]]).add();
  const samples = readExposition(prometheusText([counter])).get("sojourn_names_total")?.samples ?? [];
  assert.equal(samples.length, SERIES_MAX + 1);
  assert.equal(samples.find((one) => "otel_metric_overflow" in one.labels)?.value, 500);
});

Deno.test("the reader refuses pages that a scraper would", () => {
  const head = "# HELP a_total x\n# TYPE a_total counter\n";
  const pages: [string, RegExp][] = [
    ["a_total 1\n", /outside a family/],
    [`${head}a_total 1`, /no line feed/],
    [`${head}a_total 1\na_total 2\n`, /stands twice/],
    [`${head}a_total{x="1",x="2"} 1\n`, /label twice/],
    [`${head}a_total{x="\\t"} 1\n`, /no label/],
    [`${head}b_total 1\n`, /a stranger/],
    [`${head}a_total one\n`, /did not match|one/],
    [`${head}a_total 1\n${head}a_total 2\n`, /there before/],
    [
      '# HELP h x\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n',
      /counts fall/,
    ],
    ['# HELP h x\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_sum 1\nh_count 2\n', /no last bucket/],
  ];
  for (const [page, refusal] of pages) assert.throws(() => readExposition(page), refusal, page);
});
