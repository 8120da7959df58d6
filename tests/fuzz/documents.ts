/** Manifests, site files and topologies: refused with a reason, or read back as the same. */
import { AppError } from "../../functions/vocabulary/errors.ts";
import { parseManifest } from "../../functions/manifest.ts";
import { BUILT_IN, linksOf, parseTopology, tierOf } from "../../runtime/dev/topology.ts";
import { ConfigError, parseSiteConfig } from "../../runtime/site/config.ts";
import { mutateJson } from "./dice.ts";
import { Finding, jsonAttempt, type Target } from "./target.ts";

const MANIFESTS: readonly unknown[] = [
  { handlers: ["fetch"] },
  {
    name: "shop",
    tables: {
      orders: { key: ["by", "id"], indexes: { newest: ["by", "at"] }, consistency: "session" },
      users: { key: ["name"], at: "root" },
    },
    queues: { sms: { f: 1, maxAttempts: 5 } },
    sessions: { card: { durability: "owners" } },
    secrets: { PEPPER: { at: "root" }, KEY: {} },
    vars: { CURRENCY: "EUR" },
    routes: { "/login/*": { at: "root" }, "/:a/b": { at: "edge" } },
    cron: { nightly: "0 3 * * *", often: "*/5 * * * 1-5" },
    fetchHosts: ["api.sms.example", "*.example:8443", "[2001:db8::1]:443"],
    handlers: ["fetch", "scheduled", "queue"],
  },
  {
    queues: {
      orders: {
        webhook: { url: "https://a.example/in", secret: "KEY", timeoutMs: 900, headers: { "x-shop": "one" } },
        concurrency: 4,
      },
      calls: { pull: true },
    },
    secrets: { KEY: {} },
    handlers: ["fetch"],
  },
  { assets: "./public", handlers: [] },
  { tables: { notes: { key: ["id"], consistency: "causal" } }, handlers: ["fetch"] },
];

/** Manifests, as an isolate sends them. */
export const manifests: Target = {
  name: "manifests",
  says: "refused with a code, or read back as the same",
  reaches: ["deploy_invalid", "not_available", "round-trips", "no JSON"],
  quick: 4_000,
  open: () => ({
    attempt: (dice) =>
      jsonAttempt(
        () => mutateJson(dice, dice.pick(MANIFESTS), dice.pick(MANIFESTS)),
        parseManifest,
        (error) => error instanceof AppError ? error.code : null,
      ),
  }),
};

const SITES: readonly unknown[] = [
  {
    id: "cloud",
    parent: null,
    listen: { http: "127.0.0.1:8000", link: "127.0.0.1:0" },
    data: "d",
    secretFile: "s",
  },
  {
    id: "edge-1",
    parent: { id: "core-1", url: "tcp://127.0.0.1:9000" },
    tier: "edge",
    listen: { http: "[::1]:8000", link: "0.0.0.0:9001" },
    advertise: { http: "https://edge.example", link: "wss://edge.example/_sojourn/link" },
    data: "/var/lib/sojourn",
    cache: "../cache",
    secretFile: "secret",
    engine: "sqlite",
    capacityBytes: 2 ** 30,
    f: 0,
    area: "a",
    adminTokenFile: "token",
    limits: { cpuMs: 200, heapMb: 64, isolatesMax: 4 },
    egress: { allow: ["*", "api.example:443"] },
    chaos: true,
    log: "json",
    links: { "core-1": { rttMs: 20, mbps: 100, jitterMs: 1, loss: 0.01 } },
  },
];
const VARIABLES = [
  "SOJOURN_LIMITS_CPUMS",
  "SOJOURN_LISTEN_HTTP",
  "SOJOURN_TIER",
  "SOJOURN_F",
  "SOJOURN___",
  "SOJOURN_X",
];
const VALUES = ["", "1", "-1", "null", "{}", "edge", "127.0.0.1:1", '{"__proto__":1}', "[[[["];

/** Site files, with variables over them. */
export const configurations: Target = {
  name: "configurations",
  says: "refused with a ConfigError, or read back as the same, with addresses that can be",
  reaches: ["ConfigError", "round-trips", "no JSON"],
  quick: 4_000,
  open: () => ({
    attempt(dice) {
      const env = dice.below(8) === 0 ? { [dice.pick(VARIABLES)]: dice.pick(VALUES) } : {};
      let first = true;
      const read = (value: unknown) => {
        const config = parseSiteConfig(value, first ? env : {}, "/site");
        first = false;
        // Settings of OpenTelemetry come in one shape and leave in another.
        const { otel: _, ...others } = config;
        for (const address of Object.values(others.listen)) {
          if (!URL.canParse(`http://${address}`)) throw new Finding(`no address: ${JSON.stringify(address)}`);
        }
        return others;
      };
      return jsonAttempt(() => mutateJson(dice, dice.pick(SITES), dice.pick(SITES)), read, refused);
    },
  }),
};

const TOPOLOGIES: readonly unknown[] = [
  ...Object.values(BUILT_IN),
  {
    sites: [
      { id: "a", capacityBytes: 2 ** 20, f: 0, area: "x" },
      { id: "b", parent: "a", link: { rttMs: 5, mbps: 10, jitterMs: 1, loss: 0.1 } },
      { id: "c", parent: "b" },
    ],
    peers: [{ a: "c", b: "a", rttMs: 3 }],
  },
];

/** Topology files. */
export const topologies: Target = {
  name: "topologies",
  says: "refused with a ConfigError, or a tree that is read back as the same",
  reaches: ["ConfigError", "round-trips", "no JSON"],
  quick: 4_000,
  open: () => ({
    attempt: (dice) =>
      jsonAttempt(() => mutateJson(dice, dice.pick(TOPOLOGIES), dice.pick(TOPOLOGIES)), tree, refused),
  }),
};

function tree(value: unknown): unknown {
  const topology = parseTopology(value);
  for (const site of topology.sites) {
    const links = Object.values(linksOf(topology, site));
    const sound = links.every(({ rttMs, mbps, loss }) => rttMs >= 0 && mbps > 0 && loss >= 0 && loss <= 1);
    if (!sound) throw new Finding(`links that cannot be: ${JSON.stringify(links)}`);
    if (tierOf(topology, site) === "root" && site.parent !== undefined) {
      throw new Finding("a root with a parent");
    }
  }
  return topology;
}

const refused = (error: unknown): string | null => error instanceof ConfigError ? error.name : null;
