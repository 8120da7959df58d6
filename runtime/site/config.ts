/**
 * The site file: the configuration with which one site starts. It is read once, checked whole, and frozen.
 *
 * Stages: the JSON file → `SOJOURN_*` variables over it → checked by one strict schema → {@link SiteConfig}.
 *
 * C1  An unknown or bad field stops the start; the message names path, value and what is expected.
 * C2  Relative paths in the file are relative to the file, those in variables to the working folder.
 */
import { LOG_LEVELS } from "../observe/log_line.ts";
import { PENDING_BYTES_MAX } from "../../store/model/limits.ts";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { hostPattern } from "../isolate/egress_rules.ts";
import { ownersCount, ownersFields } from "./owners_fields.ts";
import { otelSchema, type OtelSettings, otelSettings, OtelSettingsError } from "../telemetry/mod.ts";

/** Schema of a site's id: it is also a host label and a folder name. */
export const siteId = z.string().regex(
  /^[a-z][a-z0-9-]{0,39}$/,
  "expected a site id like edge-1: [a-z][a-z0-9-]{0,39}",
);
/** Pattern of "host:port"; port 0 takes a free one. */
const ADDRESS = /^(?:\[[0-9a-f:.]+\]|[\p{L}\p{N}._-]+):\d{1,5}$/iu;
/**
 * Reports whether a text is "host:port"; that host and port are possible ones is checked by parsing a URL with them.
 */
const isAddress = (text: string): boolean => ADDRESS.test(text) && URL.canParse(`http://${text}`);
const address = z.string().refine(isAddress, "expected host:port, like 127.0.0.1:8000");
const httpUrl = z.url({ protocol: /^https?$/ });
const WEB_SOCKET_URL = /^wss?:\/\/[^\s/]+\/\S*$/i;
/** Reports whether a text is the URL of a listener for links. */
const isLinkUrl = (text: string): boolean =>
  /^(?:tcp|tls):\/\//i.test(text)
    ? isAddress(text.slice("tcp://".length))
    : WEB_SOCKET_URL.test(text) && URL.canParse(text);
export const linkUrl = z.string().refine(
  isLinkUrl,
  "expected tcp://host:port or tls://host:port of a link listener, or ws(s)://host/_sojourn/link",
);
/** Schema of a link URL, or of "host:port" alone, which is then of the listener's own protocol. */
const linkAddress = z.string().refine(
  (text) => isLinkUrl(text) || isAddress(text),
  "expected host:port, tcp://host:port, tls://host:port or ws(s)://host/_sojourn/link",
);
const bytes = z.number().int().min(0);
const ms = z.number().min(0);

/** Delay, rate and loss that an emulated link of dev or a benchmark adds. */
const emulatedLink = z.strictObject({
  rttMs: ms,
  mbps: z.number().positive().default(1000),
  jitterMs: ms.default(0),
  loss: z.number().min(0).max(1).default(0),
});

const limits = z.strictObject({
  bodyBytes: bytes.default(32 * 1024 * 1024),
  headerBytes: bytes.default(32 * 1024),
  /** Bytes of one WebSocket message of a client: its isolate holds it whole, and several of as many clients. */
  messageBytes: bytes.default(4 * 1024 * 1024),
  keyBytes: bytes.default(2 * 1024),
  valueBytes: bytes.default(1024 * 1024),
  atomicMutations: bytes.default(1000),
  atomicBytes: bytes.default(4 * 1024 * 1024),
  cpuMs: ms.default(1000),
  wallMs: ms.default(30_000),
  /**
   * Milliseconds after which a client's connection is closed, when nothing was sent to it and it waits for no answer.
   */
  idleMs: ms.min(1_000).default(120_000),
  /** Milliseconds of a cron job's run: a nightly job that reads all rows of a table takes minutes. */
  cronMs: ms.default(15 * 60_000),
  cronCpuMs: ms.default(30_000),
  heapMb: z.number().int().min(16).default(128),
  requestsPerIsolate: z.number().int().min(1).default(256),
  waitUntilMs: ms.default(30_000),
  /** Milliseconds after which an unused stateful session leaves memory. */
  statefulIdleMs: ms.default(60_000),
  /** Number of stateful sessions of one app in the whole tree; checked at the root. */
  statefulPerApp: z.number().int().min(0).default(100_000),
  /**
   * Number of peers attached to stateful sessions that are at home here, and of WebSockets to stateful sessions that
   * came in here.
   */
  statefulPeers: z.number().int().min(0).default(20_000),
  /**
   * Milliseconds for which the last answers of an ended stateful session are kept, for callers that did not get them
   * and ask again.
   */
  statefulAnswersMs: ms.max(60 * 60_000).default(60_000),
  /** Milliseconds for which the log of an ended stateful session is kept for operators, at most. */
  statefulLogMs: ms.max(30 * 24 * 3_600_000).default(3_600_000),
  /**
   * Milliseconds for which the root keeps on record that a name has ended, and its last epoch. Owners that were away
   * for longer do not learn that a log of theirs is to go: no less than an hour.
   */
  statefulEndedMs: z.number().min(3_600_000).max(366 * 24 * 3_600_000).default(7 * 24 * 3_600_000),
  /** Isolates of one app version on this site. */
  isolatesMax: z.number().int().min(1).default(2),
  /**
   * MiB that may wait of one app at this site, over all queues (docs/queues.md); no less than one isolate may leave
   * unread.
   */
  appQueuesMb: z.number().int().min(192).default(384),
  /** Isolate processes that wait pre-warmed for the next app version. */
  isolatesWarm: z.number().int().min(0).default(1),
});

const egress = z.strictObject({
  /** Hosts that apps may reach if they declare them; "*" for any public one. */
  allow: z.array(
    z.string().refine((text) => hostPattern(text) !== null, {
      message: 'expected "*", or a host such as api.example, *.example, api.example:443 or [2001:db8::1]:443',
    }),
  ).default(["*"]),
  /** Exact "host:port" pairs that may be private addresses. */
  private: z.array(
    z.string().refine((text) => {
      const pattern = hostPattern(text);
      return pattern !== null && !pattern.below && pattern.port !== null && pattern.port > 0;
    }, { message: "expected an exact host:port, like db.internal:5432 or 10.0.0.7:8080" }),
  ).default([]),
});

const tls = z.strictObject({
  /** PEM files of the listening side: its certificate, with those between it and the root, and its key. */
  cert: z.string().min(1).optional(),
  key: z.string().min(1).optional(),
  /** PEM file of roots to trust beside the system's when dialling other sites. */
  ca: z.string().min(1).optional(),
  /** True when `listen.http` takes https with the same certificate; false where a proxy in front of it does. */
  http: z.boolean().default(true),
}).refine(({ cert, key }) => (cert === undefined) === (key === undefined), {
  message: "expected cert and key together, or neither",
}).refine(({ cert, ca }) => cert !== undefined || ca !== undefined, {
  message: "expected cert and key, to listen with TLS, or ca, to trust when dialling, or all three",
});

const owners = ownersFields(siteId);

/**
 * Bytes of rows that a site holds by default. No small site outgrows it unnoticed: what does not fit is evicted and
 * fetched again.
 */
const CAPACITY_BYTES_DEFAULT = 1024 * 1024 * 1024;

const schema = z.strictObject({
  id: siteId,
  parent: z.strictObject({
    id: siteId,
    url: linkUrl,
    /** Former parents, and their children, that are gone for good: the site waits no more for what they alone had. */
    lost: z.array(siteId).max(1_000).default([]),
  }).nullable(),
  /** Tier: "root" without a parent, else "edge" unless said otherwise. */
  tier: z.enum(["root", "core", "edge"]).optional(),
  listen: z.strictObject({ http: address, link: address }),
  /** Addresses at which clients and other sites reach this one; by default those it listens on. */
  advertise: z.strictObject({ http: httpUrl.optional(), link: linkAddress.optional() }).default({}),
  data: z.string().min(1),
  /**
   * Folder of files that can be made again: the isolates' bootstrap. Several sites may share one; by default within
   * `data`.
   */
  cache: z.string().min(1).optional(),
  /** A cgroup (version 2) that is lent to the isolates: each gets one of its own below it. */
  isolateCgroup: z.string().startsWith("/").optional(),
  secretFile: z.string().min(1),
  tls: tls.optional(),
  engine: z.enum(["denokv", "sqlite", "memory"]).optional(),
  capacityBytes: z.number().int().min(1024 * 1024).default(CAPACITY_BYTES_DEFAULT),
  pendingBytesMax: z.number().int().min(1024 * 1024).default(PENDING_BYTES_MAX),
  f: ownersCount.default(0),
  area: z.string().min(1).max(64).optional(),
  owners: owners.default(owners.parse({})),
  adminTokenFile: z.string().min(1).optional(),
  limits: limits.default(limits.parse({})),
  /**
   * Clients whose answers say where they ran, with which version and what took how long: those that ask for it, or all.
   */
  answerHeaders: z.enum(["asked", "always"]).default("asked"),
  egress: egress.default(egress.parse({})),
  otel: otelSchema.optional(),
  chaos: z.boolean().default(false),
  /** True for a site of a dev cluster: `/` lists apps, and admin calls from this machine need no token. */
  dev: z.boolean().default(false),
  /**
   * True when each message of a stateful session is replayed in an isolate of its own, as a check; costs a process
   * each.
   */
  checkDeterminism: z.boolean().default(false),
  log: z.enum(["human", "json"]).default("human"),
  /** Lowest level of the site's own lines that is printed; lines below it are found by `logs` alone. */
  logLevel: z.enum(LOG_LEVELS).default("debug"),
  /** Emulated links, by the id of the site at the other end. */
  links: z.record(siteId, emulatedLink).default({}),
}).refine((site) => site.parent !== null || (site.tier ?? "root") === "root", {
  path: ["tier"],
  message: 'expected "root": a site without a parent is the root',
}).refine((site) => site.parent?.id !== site.id, {
  path: ["parent", "id"],
  message: "expected another site: none is its own parent",
}).refine((site) => site.parent === null || site.tier !== "root", {
  path: ["tier"],
  message: 'expected "core" or "edge": only the site without a parent is the root',
});

export { schema as siteFileSchema };
/** A checked site file; paths absolute, defaults filled in. */
export type SiteConfig = Readonly<
  & Omit<z.infer<typeof schema>, "tier" | "engine" | "cache" | "otel">
  & { tier: "root" | "core" | "edge"; engine: "denokv" | "sqlite" | "memory"; cache: string }
  & { otel: OtelSettings | null }
>;
/** Fields of a site file, before defaults. */
export type SiteFile = z.input<typeof schema>;

/** Thrown for a file that cannot be read or does not describe a site; the message is for the operator. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Reads and checks a site file, with `SOJOURN_*` variables over it. */
export async function readSiteConfig(file: string, env: Record<string, string>): Promise<SiteConfig> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new ConfigError(
      `cannot read the site file ${file}: ${error instanceof Error ? error.message : error}`,
    );
  }
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(
      `the site file ${file} is not JSON: ${error instanceof Error ? error.message : error}`,
    );
  }
  return parseSiteConfig(raw, env, dirname(resolve(file)));
}

/**
 * Checks a site file's contents.
 *
 * @param folder base of the relative paths in the file.
 * @throws ConfigError naming each bad field.
 */
export function parseSiteConfig(raw: unknown, env: Record<string, string>, folder: string): SiteConfig {
  const overlaid = overlayEnv(anchor(raw, folder), env);
  const parsed = schema.safeParse(overlaid);
  if (!parsed.success) throw new ConfigError(`the site file is invalid:\n${explain(parsed.error, overlaid)}`);
  const site = parsed.data;
  const root = site.parent === null;
  return Object.freeze({
    ...site,
    data: resolve(site.data),
    cache: resolve(site.cache ?? `${site.data}/cache`),
    secretFile: resolve(site.secretFile),
    tier: site.tier ?? (root ? "root" : "edge"),
    engine: site.engine ?? (root ? "denokv" : "sqlite"),
    otel: telemetry(site.otel, env),
  });
}

function telemetry(field: z.infer<typeof schema>["otel"], env: Record<string, string>): OtelSettings | null {
  try {
    return otelSettings(field, env);
  } catch (error) {
    if (error instanceof OtelSettingsError) throw new ConfigError(error.message);
    throw error;
  }
}

/** Makes the file's own relative paths absolute (C2). */
function anchor(raw: unknown, folder: string): unknown {
  if (!isRecord(raw)) return raw;
  const out = anchored(raw, ["data", "cache", "secretFile", "adminTokenFile"], folder);
  if (isRecord(raw.tls)) out.tls = anchored(raw.tls, ["cert", "key", "ca"], folder);
  return out;
}

function anchored(raw: Record<string, unknown>, names: string[], folder: string): Record<string, unknown> {
  const out = { ...raw };
  for (const name of names) {
    const value = out[name];
    if (typeof value === "string") out[name] = resolve(folder, value);
  }
  return out;
}

/**
 * Puts variables over the file's fields. `SOJOURN_LISTEN_HTTP=…` sets `listen.http`: parts are joined by `_`, a field's
 * capital letters by nothing (`SOJOURN_CAPACITYBYTES`, `SOJOURN_LIMITS_CPUMS`). Values are JSON where they parse as it,
 * else text.
 */
function overlayEnv(raw: unknown, env: Record<string, string>): unknown {
  if (!isRecord(raw)) return raw;
  const out = structuredClone(raw);
  // An object is set before its fields: `SOJOURN_OTEL=true` does not undo `SOJOURN_OTEL_RATIO=1`.
  for (const [name, text] of Object.entries(env).sort(([a], [b]) => a < b ? -1 : 1)) {
    const parts = /^SOJOURN_([A-Z_]+)$/.exec(name)?.[1]?.toLowerCase().split("_");
    if (parts === undefined || parts[0] === undefined || CLIENT_VARIABLES.has(name)) continue;
    setField(out, parts, schema.shape, envValue(text), name);
  }
  return out;
}

/** Variables of the command-line tool and of benchmarks that share the prefix but configure no site. */
const CLIENT_VARIABLES = new Set(["SOJOURN_URL", "SOJOURN_TOKEN"]);

function setField(
  target: Record<string, unknown>,
  parts: string[],
  shape: Record<string, unknown>,
  value: unknown,
  variable: string,
): void {
  const field = Object.keys(shape).find((key) => key.toLowerCase() === parts[0]);
  if (field === undefined) {
    throw new ConfigError(
      `${variable} names no field of a site file; fields are ${Object.keys(shape).join(", ")}`,
    );
  }
  if (parts.length === 1) {
    target[field] = value;
    return;
  }
  const inner = isRecord(target[field]) ? target[field] : {};
  target[field] = inner;
  setField(inner, parts.slice(1), shapeOf(shape[field]), value, variable);
}

/** Returns the fields of a nested object schema, through `default` and `optional`. */
function shapeOf(type: unknown): Record<string, unknown> {
  for (let at: unknown = type; isRecord(at) || at instanceof z.ZodType;) {
    if (at instanceof z.ZodObject) return at.shape;
    if (at instanceof z.ZodUnion) at = at.options.find((option) => option instanceof z.ZodObject);
    else {
      at = at instanceof z.ZodDefault || at instanceof z.ZodOptional || at instanceof z.ZodNullable
        ? at.unwrap()
        : undefined;
    }
  }
  return {};
}

function envValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns one line a problem: path, the value that stands there, what was expected (C1). */
export function explain(error: z.ZodError, value: unknown): string {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => `  ${[...issue.path, key].join(".")}: is no field here; remove it`);
    }
    const found = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], value);
    const shown = found === undefined ? "nothing" : JSON.stringify(found);
    return [`  ${issue.path.join(".") || "(the whole)"}: found ${shown}; ${issue.message}`];
  }).join("\n");
}
