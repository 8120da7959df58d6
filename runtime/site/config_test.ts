import { strict as assert } from "node:assert";
import { ConfigError, parseSiteConfig } from "./config.ts";

const FILE = {
  id: "edge-1",
  parent: { id: "core-1", url: "tcp://10.0.0.1:9000" },
  listen: { http: "0.0.0.0:8000", link: "0.0.0.0:9001" },
  data: "data",
  secretFile: "/etc/sojourn/secret",
};

const refused = (raw: unknown, env: Record<string, string> = {}): string => {
  try {
    parseSiteConfig(raw, env, "/srv");
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  throw new Error(`accepted: ${JSON.stringify(raw)} ${JSON.stringify(env)}`);
};

Deno.test("a site file has defaults, and its paths are relative to it (C2)", () => {
  const edge = parseSiteConfig(FILE, {}, "/srv");
  assert.deepEqual([edge.tier, edge.engine, edge.data, edge.secretFile], [
    "edge",
    "sqlite",
    "/srv/data",
    "/etc/sojourn/secret",
  ]);
  assert.equal(edge.limits.bodyBytes, 32 * 1024 * 1024);
  assert.equal(edge.chaos, false);
  const root = parseSiteConfig({ ...FILE, parent: null }, {}, "/srv");
  assert.deepEqual([root.tier, root.engine], ["root", "denokv"]);
});

Deno.test("a bad field stops the start with path, value and what was expected (C1)", () => {
  const rows: [unknown, RegExp][] = [
    [{ ...FILE, colour: "red" }, /colour: is no field here/],
    [{ ...FILE, limits: { cpu: 1 } }, /limits\.cpu: is no field here/],
    [{ ...FILE, id: "Edge 1" }, /id: found "Edge 1"; expected a site id/],
    [{ ...FILE, listen: { http: "8000", link: "h:1" } }, /listen\.http: found "8000"; expected host:port/],
    [
      { ...FILE, listen: { http: "h:65536", link: "h:1" } },
      /listen\.http: found "h:65536"; expected host:port/,
    ],
    [{ ...FILE, listen: { http: "h:1", link: "927.0.0.1:1" } }, /listen\.link: found "927\.0\.0\.1:1"/],
    [{ ...FILE, listen: { http: "h\0:1", link: "h:1" } }, /listen\.http: found "h\\u0000:1"/],
    [
      { ...FILE, parent: { id: "core-1", url: "tcp://h:99999" } },
      /parent\.url: found "tcp:\/\/h:99999"; expected tcp:/,
    ],
    [
      { ...FILE, parent: { id: "core-1", url: "http://x" } },
      /parent\.url: found "http:\/\/x"; expected tcp:/,
    ],
    [{ ...FILE, capacityBytes: -1 }, /capacityBytes: found -1;/],
    [{ ...FILE, otel: "yes" }, /otel: found "yes"; expected true, false/],
    [{ ...FILE, f: 9 }, /f: found 9; Too big: expected number to be <=8/],
    [{ ...FILE, f: 1.5 }, /f: found 1\.5;/],
    [{ ...FILE, owners: { suspectMs: 900 } }, /owners\.suspectMs: found 900; expected at least twice beatMs/],
    [{ ...FILE, owners: { deadMs: 1_000 } }, /owners\.deadMs: found 1000; expected at least suspectMs/],
    [{ ...FILE, owners: { sites: ["Edge"] } }, /owners\.sites\.0: found "Edge"; expected a site id/],
    [{ ...FILE, owners: { rtt: 3 } }, /owners\.rtt: is no field here/],
    [{ ...FILE, tier: "root" }, /tier: found "root"; expected "core" or "edge"/],
    [{ ...FILE, parent: null, tier: "edge" }, /tier: found "edge"; expected "root"/],
    [{ ...FILE, data: undefined }, /data: found nothing;/],
    [[], /\(the whole\)/],
    ["text", /\(the whole\)/],
  ];
  for (const [raw, message] of rows) assert.match(refused(raw), message, JSON.stringify(raw));
});

Deno.test("variables go over the file", () => {
  const env = {
    SOJOURN_LISTEN_HTTP: "127.0.0.1:1",
    SOJOURN_CAPACITYBYTES: "2097152",
    SOJOURN_LIMITS_CPUMS: "50",
    PATH: "/bin",
  };
  const site = parseSiteConfig(FILE, env, "/srv");
  assert.deepEqual([site.listen.http, site.listen.link, site.capacityBytes, site.limits.cpuMs], [
    "127.0.0.1:1",
    "0.0.0.0:9001",
    2097152,
    50,
  ]);
  assert.match(refused(FILE, { SOJOURN_COLOUR: "red" }), /SOJOURN_COLOUR names no field/);
  assert.match(refused(FILE, { SOJOURN_LIMITS_CPUMS: "soon" }), /limits\.cpuMs: found "soon"/);
  assert.ok(parseSiteConfig(FILE, { SOJOURN_URL: "http://x", SOJOURN_TOKEN: "t" }, "/srv"));
});

Deno.test("telemetry is a switch or fields, in the file and in variables", () => {
  const sampled = (file: unknown, env: Record<string, string>) =>
    parseSiteConfig({ ...FILE, ...(file === undefined ? {} : { otel: file }) }, env, "/srv").otel?.sampling
      .ratio;
  assert.equal(sampled(undefined, {}), undefined);
  assert.equal(sampled(true, {}), 0.01);
  assert.equal(sampled({ ratio: 0.5 }, {}), 0.5);
  assert.equal(sampled({ ratio: 0.5 }, { SOJOURN_OTEL_RATIO: "0.2" }), 0.2);
  assert.equal(sampled(undefined, { SOJOURN_OTEL_RATIO: "1", SOJOURN_OTEL: "true" }), 1);
  assert.equal(sampled({ ratio: 0.5 }, { SOJOURN_OTEL: "false" }), undefined);
  assert.match(refused(FILE, { SOJOURN_OTEL_RATIO: "2" }), /otel\.ratio: found 2/);
  assert.match(
    refused(FILE, { SOJOURN_OTEL_SPEED: "2" }),
    /otel\.speed: is no field here|SOJOURN_OTEL_SPEED names no/,
  );
  assert.match(
    refused({ ...FILE, otel: true }, { OTEL_TRACES_SAMPLER_ARG: "x" }),
    /OTEL_TRACES_SAMPLER_ARG: found "x"/,
  );
});

Deno.test("links are reached over TCP, TLS and WebSocket; certificates are found beside the file (C2)", () => {
  const at = (url: string) =>
    parseSiteConfig({ ...FILE, parent: { id: "core-1", url } }, {}, "/srv").parent?.url;
  const urls = [
    "tcp://10.0.0.1:1",
    "tls://core-1.example:7000",
    "tls://[::1]:7000",
    "ws://core-1.example/_sojourn/link",
    "wss://core-1.example:8443/_sojourn/link",
  ];
  for (const url of urls) assert.equal(at(url), url);
  const env = { SOJOURN_TLS_HTTP: "false", SOJOURN_TLS_CA: "ca.pem" };
  const { tls } = parseSiteConfig({ ...FILE, tls: { cert: "a/cert.pem", key: "/k.pem" } }, env, "/srv");
  assert.deepEqual(tls, { cert: "/srv/a/cert.pem", key: "/k.pem", ca: "ca.pem", http: false });
});
