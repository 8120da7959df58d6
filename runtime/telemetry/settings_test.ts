import assert from "node:assert/strict";
import { otelSchema, otelSettings } from "./settings.ts";

Deno.test("telemetry is off unless the site file or Deno's switch turns it on", () => {
  const rows: [unknown, Record<string, string>, boolean][] = [
    [undefined, {}, false],
    [false, { OTEL_DENO: "true" }, false],
    [true, {}, true],
    [{}, {}, true],
    [undefined, { OTEL_DENO: "true" }, true],
    [undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" }, false],
    [true, { OTEL_SDK_DISABLED: "true" }, false],
  ];
  for (const [field, env, on] of rows) {
    assert.equal(
      otelSettings(otelSchema.optional().parse(field), env) !== null,
      on,
      JSON.stringify([field, env]),
    );
  }
});

Deno.test("the site file goes before the standard variables, and those before defaults", () => {
  const plain = otelSettings(true, {});
  assert.equal(plain?.export.traces?.url, "http://localhost:4318/v1/traces");
  assert.deepEqual(plain?.sampling, { ratio: 0.01, followCallers: true, tracesPerSecondMax: 200 });
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://c.example/otlp/",
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "https://m.example/take",
    OTEL_EXPORTER_OTLP_HEADERS: "api-key=a%20b, x=1",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x=2",
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.5",
    OTEL_SERVICE_NAME: "shop",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
  };
  const standard = otelSettings(true, env);
  assert.equal(standard?.export.traces?.url, "https://c.example/otlp/v1/traces");
  assert.equal(standard?.export.metrics?.url, "https://m.example/take");
  assert.deepEqual(standard?.export.traces?.headers, { "api-key": "a b", x: "2" });
  assert.deepEqual([standard?.sampling.ratio, standard?.sampling.followCallers], [0.5, false]);
  assert.deepEqual(standard?.resource, { "deployment.environment.name": "test", "service.name": "shop" });
  const own = otelSettings({ endpoint: "http://own:1", ratio: 0.2, headersFrom: "KEYS" }, {
    ...env,
    KEYS: "k=v",
  });
  assert.deepEqual([own?.export.traces?.url, own?.sampling.ratio], ["http://own:1/v1/traces", 0.2]);
  assert.deepEqual(own?.export.metrics?.headers, { k: "v" });
  assert.equal(otelSettings(true, { OTEL_METRICS_EXPORTER: "none" })?.export.metrics, null);
});

Deno.test("a variable that cannot be used stops the start by name, without a header's value (O1)", () => {
  const rows: [Record<string, string>, RegExp][] = [
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" },
      /OTEL_EXPORTER_OTLP_ENDPOINT: found "collector:4318"/,
    ],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /PROTOCOL: found "grpc"; expected http\/json/],
    [{ OTEL_TRACES_SAMPLER_ARG: "2" }, /SAMPLER_ARG: found "2"; expected 0 to 1/],
    [{ OTEL_TRACES_SAMPLER: "jaeger_remote" }, /OTEL_TRACES_SAMPLER: found "jaeger_remote"/],
    [{ OTEL_BSP_SCHEDULE_DELAY: "-1" }, /OTEL_BSP_SCHEDULE_DELAY: found "-1"/],
    [{ OTEL_TRACES_EXPORTER: "zipkin" }, /OTEL_TRACES_EXPORTER: found "zipkin"; expected otlp or none/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "hidden" }, /OTEL_EXPORTER_OTLP_HEADERS: holds a part without "="/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "a b=hidden" }, /holds what is no header/],
  ];
  for (const [env, refusal] of rows) {
    assert.throws(() => otelSettings(true, env), (error) => {
      assert.match(String(error), refusal);
      assert.doesNotMatch(String(error), /hidden/);
      return true;
    });
  }
  assert.throws(() => otelSettings({ headersFrom: "KEYS" }, {}), /the variable KEYS is not set/);
});
