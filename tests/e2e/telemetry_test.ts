/** Traces and metrics of a running cluster, as a collector and a scraper see them. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { FreePorts } from "../../runtime/dev/free_port.ts";
import { readExposition } from "../runtime/telemetry/exposition.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";
import { Collector, type SeenSpan } from "./collector.ts";

const TRACED = join(import.meta.dirname ?? ".", "apps", "traced");
const SERVER = 2;
const CLIENT = 3;

interface Setting {
  readonly cluster: TestCluster;
  readonly collector: Collector;
  /** That the app may ask: in the configuration before the cluster starts. */
  readonly otherPort: number;
}

let traces = 0;
/** A trace of a caller's own. */
function caller(sampled = true): { traceId: string; headers: Record<string, string> } {
  const traceId = (++traces).toString(16).padStart(32, "a");
  return { traceId, headers: { traceparent: `00-${traceId}-00000000000000ff-${sampled ? "01" : "00"}` } };
}

/** The spans of a trace, once `enough` says that all have come. */
async function traceOf(
  { collector }: Setting,
  traceId: string,
  enough: (spans: SeenSpan[]) => boolean,
): Promise<SeenSpan[]> {
  await eventually(`the trace ${traceId} is whole`, () => Promise.resolve(enough(collector.trace(traceId))));
  return collector.trace(traceId);
}

function find(spans: readonly SeenSpan[], site: string, name: string): SeenSpan {
  const found = spans.filter((span) => span.site === site && span.name === name);
  assert.equal(
    found.length,
    1,
    `${found.length} spans ${name} at ${site} of ${spans.map((s) => `${s.site} ${s.name}`)}`,
  );
  return found[0] as SeenSpan;
}

/** So many sites have told of their part: a site's own span ends after all that it did. */
const parts = (count: number) => (spans: SeenSpan[]) =>
  spans.filter(({ kind }) => kind === SERVER).length >= count;

/** Each is the parent of the next. */
function isChain(spans: readonly SeenSpan[]): void {
  for (const [i, span] of spans.entries()) {
    if (i > 0) assert.equal(span.parent, spans[i - 1]?.spanId, `${span.name} below ${spans[i - 1]?.name}`);
  }
}

/** A request pinned to the root: one trace over three sites. */
async function crossesSites(setting: Setting): Promise<void> {
  const { cluster } = setting;
  const { traceId, headers } = caller();
  const answer = await ask(`${cluster.url("edge-1")}/traced/root/say?q=hidden-query`, {
    headers: { ...headers, authorization: "Bearer hidden-header", cookie: "a=hidden-cookie" },
  });
  assert.equal(answer.status, 200);
  const spans = await traceOf(
    setting,
    traceId,
    parts(3),
  );
  const name = "GET /traced/*";
  const arrived = find(spans, "edge-1", name);
  const call = find(spans, "cloud", "traced fetch");
  assert.equal(arrived.parent, "00000000000000ff");
  isChain([
    arrived,
    find(spans, "edge-1", "forward core-1"),
    find(spans, "core-1", name),
    find(spans, "core-1", "forward cloud"),
    find(spans, "cloud", name),
    call,
  ]);
  assert.equal(find(spans, "cloud", "session new").parent, find(spans, "cloud", name).spanId);
  assert.deepEqual(arrived.attributes, {
    "http.request.method": "GET",
    "url.path": "/traced/root/say",
    "url.scheme": "http",
    "sojourn.site": "edge-1",
    "http.route": "/traced/*",
    "sojourn.app": "traced",
    "http.response.status_code": 200,
  });
  assert.equal(find(spans, "edge-1", "forward core-1").kind, CLIENT);
  const { "faas.instance": instance, "faas.coldstart": cold, ...faas } = call.attributes;
  assert.match(String(instance), /^\d+$/);
  assert.equal(typeof cold, "boolean");
  assert.deepEqual(faas, {
    "faas.name": "traced",
    "faas.version": answer.headers.get("sojourn-version"),
    "faas.trigger": "http",
  });
  assert.equal(answer.headers.get("traceparent"), `00-${traceId}-${arrived.spanId}-01`);
  assert.match(cluster.log(), new RegExp(`said at the root.*traceId=${traceId}`));
  assert.ok(arrived.ms >= find(spans, "cloud", name).ms);
}

/** How often a write is made until one is not on disk yet when its answer is ready: most are not. */
const GATE_TRIES = 50;

/** An answer that waited for the disk says so. */
async function waitsForDisk(setting: Setting): Promise<void> {
  const { cluster } = setting;
  for (let i = 0; i < GATE_TRIES; i++) {
    const { traceId, headers } = caller();
    const url = `${cluster.url("edge-1")}/traced/notes/gate`;
    const put = await ask(url, { method: "PUT", body: `${i}`, headers });
    assert.equal(put.status, 201, put.text);
    const spans = await traceOf(setting, traceId, parts(1));
    const gate = spans.find(({ name }) => name === "gate");
    if (gate === undefined) continue;
    return isChain([find(spans, "edge-1", "PUT /traced/*"), find(spans, "edge-1", "traced fetch"), gate]);
  }
  assert.fail(`of ${GATE_TRIES} writes none waited for the disk`);
}

/** What one site has and the other does not yet is carried: the site that it comes from is in the trace. */
async function carries(setting: Setting): Promise<void> {
  const { cluster } = setting;
  const client = new HeaderClient();
  await client.fetch(`${cluster.url("edge-2")}/traced/notes/n`); // the two edges have covered it
  await client.fetch(`${cluster.url("edge-1")}/traced/notes/n`);
  const { traceId, headers } = caller();
  await cluster.control("pause", "core-1");
  try {
    const put = await client.fetch(`${cluster.url("edge-1")}/traced/notes/n`, {
      method: "PUT",
      body: "hidden-value",
      headers,
    });
    assert.equal(put.status, 201, put.text);
    const got = await client.fetch(`${cluster.url("edge-2")}/traced/notes/n`, { headers });
    assert.equal(got.text, "hidden-value");
  } finally {
    await cluster.control("resume", "core-1");
  }
  const spans = await traceOf(setting, traceId, parts(3));
  const attached = find(spans, "edge-2", "session carry");
  assert.equal(attached.attributes["sojourn.handoff"], "carry");
  assert.equal(attached.attributes["sojourn.handoff.rows"], 1);
  assert.ok(Number(attached.attributes["sojourn.handoff.bytes"]) > 10);
  isChain([find(spans, "edge-2", "GET /traced/*"), attached, find(spans, "edge-1", "session handoff")]);
  const written = find(spans, "edge-1", "commit notes");
  isChain([find(spans, "edge-1", "PUT /traced/*"), find(spans, "edge-1", "traced fetch"), written]);
  assert.deepEqual([written.kind, written.attributes], [CLIENT, {
    "db.system.name": "sojourn",
    "db.operation.name": "commit",
    "db.collection.name": "notes",
  }]);
  assert.equal(find(spans, "edge-2", "get notes").attributes["db.response.returned_rows"], 1);
}

/** A row that the edge does not hold: the sites that it is fetched from are in the trace. */
async function fetches(setting: Setting): Promise<void> {
  const { cluster } = setting;
  await ask(`${cluster.url("cloud")}/traced/notes/far`, { method: "PUT", body: "far" });
  const { traceId, headers } = caller();
  const got = await ask(`${cluster.url("edge-3")}/traced/notes/far`, { headers });
  assert.equal(got.text, "far");
  const spans = await traceOf(setting, traceId, parts(3));
  const call = find(spans, "edge-3", "traced fetch");
  isChain([call, find(spans, "edge-3", "get notes")]);
  for (const site of ["core-2", "cloud"]) isChain([call, find(spans, site, "store fetch")]);
}

/** What an app asks of others is part of the trace, at both ends. */
async function asksOthers(setting: Setting): Promise<void> {
  const heard: (string | null)[] = [];
  const other = Deno.serve(
    { hostname: "127.0.0.1", port: setting.otherPort, onListen: () => {} },
    (request) => {
      heard.push(request.headers.get("traceparent"));
      return new Response("heard");
    },
  );
  try {
    const { traceId, headers } = caller();
    const url = `${setting.cluster.url("edge-3")}/traced/ask/${setting.otherPort}`;
    assert.equal((await ask(url, { headers })).text, "heard");
    const spans = await traceOf(setting, traceId, parts(1));
    const asked = find(spans, "edge-3", "GET");
    assert.equal(heard[0], `00-${traceId}-${asked.spanId}-01`);
    isChain([find(spans, "edge-3", "traced fetch"), asked]);
    assert.deepEqual([asked.kind, asked.attributes], [CLIENT, {
      "http.request.method": "GET",
      "server.address": "127.0.0.1",
      "server.port": setting.otherPort,
      "http.response.status_code": 200,
    }]);
    const unsampled = caller(false);
    await ask(url, { headers: unsampled.headers });
    assert.equal(
      heard[1],
      unsampled.headers.traceparent,
      "a trace that is not recorded here goes on as it came",
    );
    assert.deepEqual(setting.collector.trace(unsampled.traceId), []);
  } finally {
    await other.shutdown();
  }
}

/** Spans that an app makes by OpenTelemetry's API, in an isolate without a network, are in the trace. */
async function spansOfApps(setting: Setting): Promise<void> {
  const heard: (string | null)[] = [];
  const other = Deno.serve(
    { hostname: "127.0.0.1", port: setting.otherPort, onListen: () => {} },
    (request) => {
      heard.push(request.headers.get("traceparent"));
      return new Response("heard");
    },
  );
  try {
    const site = setting.cluster.url("edge-3");
    await ask(`${site}/_sojourn/admin/apps/traced/secrets/KEY`, { method: "PUT", body: "hidden-secret" });
    await eventually("the secret is there", async () => (await ask(`${site}/traced/has-key`)).status === 200);
    const { traceId, headers } = caller();
    const url = `${site}/traced/work/${setting.otherPort}`;
    const told = JSON.parse((await ask(url, { headers })).text);
    const spans = await traceOf(setting, traceId, parts(1));
    const call = find(spans, "edge-3", "traced fetch");
    const outer = find(spans, "edge-3", "outer");
    const inner = find(spans, "edge-3", "inner");
    const asked = find(spans, "edge-3", "GET");
    isChain([call, outer, inner]);
    isChain([outer, asked]);
    assert.deepEqual([outer.attributes, inner.kind, inner.failed, outer.failed], [
      { step: 1 },
      CLIENT,
      true,
      false,
    ]);
    assert.equal(inner.attributes["exception.message"], "refused: [secret KEY]");
    assert.equal(heard[0], `00-${traceId}-${asked.spanId}-01`);
    assert.deepEqual(told, {
      carrier: { traceparent: `00-${traceId}-${outer.spanId}-01` },
      recording: { traceId, spanId: inner.spanId, traceFlags: 1 },
      seen: true,
    });
    const quiet = await ask(url);
    assert.equal(JSON.parse(quiet.text).recording.traceFlags, 0, "nothing is recorded that nobody asked for");
    assert.equal(heard[1], null);
  } finally {
    await other.shutdown();
  }
}

/** A failure is told by its code. */
async function fails(setting: Setting): Promise<void> {
  const { traceId, headers } = caller();
  const answer = await ask(`${setting.cluster.url("edge-1")}/traced/throw`, { headers });
  assert.equal(answer.status, 502);
  const spans = await traceOf(setting, traceId, parts(1));
  const call = find(spans, "edge-1", "traced fetch");
  const server = find(spans, "edge-1", "GET /traced/*");
  assert.deepEqual([call.failed, call.attributes["error.type"]], [true, "app_error"]);
  assert.deepEqual([server.failed, server.attributes["http.response.status_code"]], [true, 502]);
}

/** What an operator does is recorded over the sites that it crosses, and names no row. */
async function operates(setting: Setting): Promise<void> {
  const { cluster } = setting;
  const { traceId, headers } = caller();
  const at = "/_sojourn/admin/apps/traced/rollback?hidden-query";
  const answer = await ask(`${cluster.url("edge-1")}${at}`, {
    method: "POST",
    headers: {
      ...headers,
      authorization: `Bearer ${cluster.adminToken}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ to: "hidden-value" }),
  });
  assert.ok(answer.status >= 400 && answer.status < 500, `no such version: ${answer.status} ${answer.text}`);
  const spans = await traceOf(
    setting,
    traceId,
    parts(3),
  );
  const name = "POST /_sojourn/admin/apps";
  isChain([
    find(spans, "edge-1", name),
    find(spans, "edge-1", "forward core-1"),
    find(spans, "core-1", name),
    find(spans, "core-1", "forward cloud"),
    find(spans, "cloud", name),
  ]);
  assert.deepEqual(find(spans, "cloud", name).attributes, {
    "sojourn.forwarded": true,
    "http.request.method": "POST",
    "http.route": "/_sojourn/admin/apps",
    "sojourn.site": "cloud",
    "http.response.status_code": answer.status,
  });
}

/** A run of a cron job begins a trace, and is recorded always. */
async function runsJobs(setting: Setting): Promise<void> {
  const { cluster, collector } = setting;
  const ran = await ask(`${cluster.url("cloud")}/_sojourn/admin/apps/traced/cron/nightly/run`, {
    method: "POST",
    headers: { authorization: `Bearer ${cluster.adminToken}` },
  });
  assert.equal(JSON.parse(ran.text).ok, true, ran.text);
  const job = () => collector.spans.find((span) => span.name === "traced scheduled");
  await eventually("the run has been told", () => Promise.resolve(job() !== undefined));
  const run = job();
  assert.ok(run !== undefined);
  const spans = collector.trace(run.traceId);
  assert.deepEqual([run.site, run.parent, run.kind], ["cloud", "", SERVER]);
  assert.deepEqual([run.attributes["faas.trigger"], run.attributes["faas.cron"]], ["timer", "0 3 * * *"]);
  isChain([run, find(spans, "cloud", "inside")]);
  isChain([run, find(spans, "cloud", "commit kv")]);
}

/** Nobody asked, and the ratio is 0: nothing was recorded but what callers asked for. */
function nothingElse({ collector }: Setting): void {
  // Jobs and what operators change are recorded always: the deploys that dev makes are.
  const others = collector.spans.filter((span) => !span.traceId.startsWith("aaaaaa"));
  const isAlways = ({ name }: SeenSpan) =>
    /^(?:(?:POST|PUT) \/_sojourn\/admin\/|traced scheduled$)/.test(name);
  const always = new Set(
    others.filter((span) => span.parent === "" && isAlways(span)).map((span) => span.traceId),
  );
  assert.deepEqual(others.filter((span) => !always.has(span.traceId)), []);
  assert.doesNotMatch(collector.text, /hidden/);
  assert.deepEqual([...collector.keys], ["the key"]);
  assert.deepEqual(collector.refused, []);
  assert.doesNotMatch(collector.text, /sojourn_session|sojourn-session/);
}

/** The same numbers go to collectors and scrapers. */
async function counts({ cluster, collector }: Setting): Promise<void> {
  const page = await ask(`${cluster.url("edge-1")}/_sojourn/metrics`);
  const families = readExposition(page.text);
  const valueOf = (name: string, labels: Record<string, string>) =>
    families.get(name)?.samples.filter((sample) =>
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
    ).reduce((sum, sample) => sum + sample.value, 0);
  const requests = "sojourn_http_server_request_duration_seconds";
  const pinned = families.get(requests)?.samples.find(({ name, labels }) =>
    name === `${requests}_count` && labels.sojourn_route_tier === "root"
  );
  assert.equal(pinned?.value, 1);
  assert.equal(pinned?.labels.sojourn_app, "traced");
  assert.equal(pinned?.labels.http_response_status_code, "200");
  assert.equal(valueOf("sojourn_faas_errors_total", { error_type: "app_error" }), 1);
  assert.equal(valueOf("sojourn_isolate_count", { sojourn_app: "traced" }), 1);
  assert.ok((valueOf("sojourn_store_fsync_duration_seconds", {}) ?? 0) > 0);
  assert.ok((valueOf("sojourn_link_sent_bytes_total", { site: "core-1" }) ?? 0) > 0);
  assert.ok((valueOf("sojourn_process_memory_usage_bytes", {}) ?? 0) > 10_000_000);
  const elsewhere = readExposition((await ask(`${cluster.url("edge-2")}/_sojourn/metrics`)).text);
  const handoffs = elsewhere.get("sojourn_session_handoffs_total")?.samples ?? [];
  assert.equal(handoffs.find(({ labels }) => labels.sojourn_handoff === "carry")?.value, 1);
  assert.equal(elsewhere.get("sojourn_session_carried_rows_total")?.samples[0]?.value, 1);
  await eventually("every site has sent its metrics", () => Promise.resolve(collector.metrics.size === 6));
  for (
    const name of ["http.server.request.duration", "store.fsync.duration", "link.sent", "process.cpu.time"]
  ) {
    assert.ok(collector.metrics.get("edge-1")?.has(name), name);
  }
}

Deno.test("telemetry of a cluster", async (t) => {
  const collector = new Collector();
  using ports = new FreePorts();
  const otherPort = await ports.draw();
  const cluster = await startCluster({
    apps: [TRACED],
    env: {
      SOJOURN_OTEL: JSON.stringify({ endpoint: collector.url, ratio: 0, headersFrom: "COLLECTOR_HEADERS" }),
      COLLECTOR_HEADERS: "x-key=the%20key",
      OTEL_BSP_SCHEDULE_DELAY: "200",
      OTEL_METRIC_EXPORT_INTERVAL: "1000",
      SOJOURN_EGRESS_PRIVATE: JSON.stringify([`127.0.0.1:${otherPort}`]),
    },
  });
  const setting = { cluster, collector, otherPort };
  try {
    await t.step(
      "a request that is pinned to the root is one trace over the sites",
      () => crossesSites(setting),
    );
    await t.step("an answer that waited for the disk says so", () => waitsForDisk(setting));
    await t.step("a handoff that carries names the site that it carries from", () => carries(setting));
    await t.step("a row that is fetched names the sites it is fetched from", () => fetches(setting));
    await t.step("an app's outgoing fetch goes on with the trace", () => asksOthers(setting));
    await t.step("an app's own spans are in the trace", () => spansOfApps(setting));
    await t.step("a failure is told by its code", () => fails(setting));
    await t.step("an operator's call is one trace over the sites", () => operates(setting));
    await t.step("a run of a cron job is a trace", () => runsJobs(setting));
    await t.step("metrics reach scrapers and collectors", () => counts(setting));
    await t.step(
      "nothing is recorded that was not asked for, and nothing secret",
      () => nothingElse(setting),
    );
  } finally {
    await cluster.stop();
    await collector.close();
  }
});
