/**
 * The manifest: the data fields of an app's default export, which the site acts on. An isolate reads it off the
 * evaluated module (`readManifest`); the site parses what the isolate sent with the same schema (`parseManifest`),
 * since everything from an isolate is outside data.
 *
 * M1  A manifest that parses is complete: every field is present, optional ones with their defaults.
 * M2  parseManifest(JSON of a manifest) is that manifest.
 * M3  Every declared name is in the manifest or refused: none is left out because it is one of JavaScript's own.
 */
import { isPlainRoute, PATTERNS_MAX, RoutePatterns, routeProblem } from "./route_pattern.ts";
import { z } from "zod";
import { F_MAX, TUPLES_BYTES_MAX, TUPLES_MAX } from "../store/model/limits.ts";
import { cronProblem } from "./cron_times.ts";
import { AppError } from "./vocabulary/errors.ts";
import { ORIGIN_EXPECTED, originAddress } from "./origin_address.ts";
import { methodNames } from "./class/session_methods.ts";
import { SESSION_BASE } from "./class/session_slot.ts";
import { BATCH_MESSAGES_MAX, WEBHOOKS_OPEN_MAX } from "./queues/limits.ts";
import { QUEUE_DEFAULTS } from "./queues/settings.ts";
import { webhookSchema } from "./webhook.ts";

/** Schema of the names of tables, indexes, queues, secrets, variables, session classes and cron jobs. */
const name = z.string().regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, {
  error: "a name: a letter or _, then at most 63 letters, digits, _ and -",
});
const field = z.string().min(1).max(256);
const tier = z.enum(["root", "core", "edge"]);

const tableSchema = z.strictObject({
  key: z.array(field).min(1).max(16),
  indexes: z.record(name, z.array(field).min(1).max(16)).default({}),
  consistency: z.enum(["eventual", "session", "causal", "primary"]).default("session"),
  at: z.literal("root").optional(),
});

const DAY_MS = 24 * 3_600_000;
/** Schema of a declared queue. Fields that are left out have the defaults of functions/queues/settings.ts. */
const queueSchema = z.strictObject({
  f: z.int().min(0).max(F_MAX).default(1),
  maxAttempts: z.int().min(1).max(1000).default(5),
  pull: z.boolean().optional(),
  webhook: webhookSchema.optional(),
  batchMax: z.int().min(1).max(BATCH_MESSAGES_MAX).optional(),
  batchWaitMs: z.int().min(0).max(60_000).optional(),
  concurrency: z.int().min(1).max(1_000).optional(),
  retryMinMs: z.int().min(0).max(DAY_MS).optional(),
  retryMaxMs: z.int().min(0).max(DAY_MS).optional(),
  dedupeMs: z.int().min(0).max(DAY_MS).optional(),
  perSecond: z.number().min(0.001).max(1_000_000).optional(),
  messagesMax: z.int().min(1).max(TUPLES_MAX).optional(),
  bytesMax: z.int().min(1).max(TUPLES_BYTES_MAX).optional(),
});
const QUEUE_FIELDS = Object.keys(queueSchema.shape);

/**
 * Methods of a class that a manifest names, and characters of a name. A class with more, or longer ones, is called
 * without being asked first.
 */
const METHODS_MAX = 1_000, METHOD_CHARS_MAX = 200;

const sessionSchema = z.strictObject({
  origin: z.string().max(1024).refine((text) => originAddress(text) !== null, { error: ORIGIN_EXPECTED })
    .optional(),
  durability: z.enum(["owners", "hosts"]).default("owners"),
  whenThrown: z.enum(["reject", "retry", "park"]).default("reject"),
  checkpoint: z.strictObject({
    messages: z.number().positive().optional(),
    bytes: z.number().positive().optional(),
    ms: z.number().positive().optional(),
  }).optional(),
  shape: z.int().min(0).max(2 ** 31 - 1).optional(),
  standby: z.boolean().default(false),
  retention: z.strictObject({ logMs: z.number().min(0).optional() }).optional(),
  /** Methods that can be called; null: not known, of a version that was deployed before this was noted. */
  methods: z.array(z.string().max(METHOD_CHARS_MAX)).max(METHODS_MAX).nullable().default(null),
});

const cronExpression = z.string().max(256).superRefine((text, context) => {
  const problem = cronProblem(text);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});
const HOST = /^(?:(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;
const host = z.string().max(260).regex(HOST, {
  error: "a host or host:port in lower case, such as api.example, *.api.example or localhost:8080",
});

/** Cron jobs of an app: each is a row at every site; the root runs few at a time. */
const CRON_JOBS_MAX = 100;
/** Levels of a manifest: the fields of an index of a table are the deepest. */
const MANIFEST_DEPTH = 5;
/** Name that JSON and objects can have and `z.record` passes over, the only one. */
const LOST_NAME = "__proto__";
/** Routes of an app: each is looked at for each request; most apps have fewer than ten. */
const ROUTES_MAX = 1_000;
/**
 * Characters of a manifest: it is one row, which every site holds and a change of it resends whole, and as large as any
 * row may be.
 */
const MANIFEST_CHARS_MAX = 1024 * 1024;

const manifestSchema = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,39}$/, {
    error: "an app name: a lower-case letter, then at most 39 lower-case letters, digits and -",
  }).optional(),
  tables: z.record(name, tableSchema).default({}),
  queues: z.record(name, queueSchema).default({}),
  sessions: z.record(name, sessionSchema).default({}),
  secrets: z.record(name, z.strictObject({ at: z.literal("root").optional() })).default({}),
  vars: z.record(name, z.string().max(65_536)).default({}),
  routes: z.record(z.string(), z.strictObject({ at: tier })).default({}),
  cron: z.record(name, cronExpression).default({}),
  fetchHosts: z.array(host).max(256).default([]),
  assets: z.string().min(1).max(1024).optional(),
  handlers: z.array(z.enum(["fetch", "scheduled", "queue", "listenQueue"])),
}).refine((app) => app.handlers.length > 0 || app.assets !== undefined, {
  path: ["handlers"],
  error: "at least one handler (fetch, scheduled, queue or kv.listenQueue), or assets",
});

/** Manifest: what a site needs to know of an app. */
export type Manifest = z.infer<typeof manifestSchema>;

/** Reason for which an app can't be deployed. */
export interface DeployIssue {
  readonly path: string;
  readonly value: string;
  readonly expected: string;
}

/**
 * Parses a manifest, for example its JSON from an isolate.
 *
 * @throws AppError `deploy_invalid`, with `detail.issues` of {@link DeployIssue}; `not_available` for a level of
 * consistency that is not built yet.
 */
export function parseManifest(value: unknown): Manifest {
  const lost = [...lostNames(value)];
  if (lost.length > 0) throw deployInvalid(lost);
  const result = manifestSchema.safeParse(value, { reportInput: true });
  if (!result.success) throw deployInvalid(result.error.issues.map((issue) => readable(issue, value)));
  const issues = [...crossIssues(result.data)];
  if (issues.length > 0) throw deployInvalid(issues);
  for (const [table, { consistency }] of Object.entries(result.data.tables)) {
    if (consistency === "causal" || consistency === "primary") {
      throw new AppError(
        "not_available",
        `tables.${table}.consistency: "${consistency}" is not available in this version of Sojourn; ` +
          `"session" and "eventual" are`,
        { path: `tables.${table}.consistency` },
      );
    }
  }
  return result.data;
}

/**
 * Returns the manifest of a module's default export.
 *
 * @param listens true where the module listens to its KV's queue, which its default export does not say.
 * @throws AppError as {@link parseManifest}.
 */
export function readManifest(defaultExport: unknown, listens = false): Manifest {
  if ((typeof defaultExport !== "object" && typeof defaultExport !== "function") || defaultExport === null) {
    throw deployInvalid([{
      path: "default",
      value: show(defaultExport),
      expected: "a default export with a fetch, scheduled or queue function",
    }]);
  }
  const app = defaultExport as Record<string, unknown>;
  const named = typeof defaultExport === "function" ? undefined : app["name"];
  const group = (name: string) => ownNames(name, app[name]);
  return parseManifest(defined({
    name: typeof named === "string" ? named : undefined,
    tables: each(group("tables"), readTable),
    queues: each(group("queues"), readQueue),
    sessions: each(group("sessions"), readSession),
    secrets: group("secrets"),
    vars: group("vars"),
    // A Hono app has a `routes` array of its own.
    routes: Array.isArray(app["routes"]) ? undefined : group("routes"),
    cron: group("cron"),
    fetchHosts: app["fetchHosts"],
    assets: app["assets"],
    handlers: [
      ...["fetch", "scheduled", "queue"].filter((h) => typeof app[h] === "function"),
      ...listens ? ["listenQueue"] : [],
    ],
  }));
}

/** Returns the declarations of a session's class: its static members. The class itself stays in the isolate. */
function readSession(name: string, given: unknown): unknown {
  const isSession = typeof given === "function" && typeof given.prototype === "object" &&
    given.prototype !== null && SESSION_BASE in given.prototype;
  if (isSession) {
    const said = pick(given, [
      "origin",
      "durability",
      "whenThrown",
      "checkpoint",
      "shape",
      "standby",
      "retention",
    ]);
    const methods = methodNames(given.prototype);
    const isKnown = methods.length <= METHODS_MAX && methods.every((each) => each.length <= METHOD_CHARS_MAX);
    return { ...said, methods: isKnown ? methods : null };
  }
  throw deployInvalid([{
    path: `sessions.${name}`,
    value: show(given),
    expected: 'a class that extends Session of "sojourn"',
  }]);
}

/** Returns the declaration of a queue without its schema. */
function readQueue(name: string, queue: unknown): unknown {
  assertSchema(`queues.${name}.schema`, queue);
  const read = pick(queue, QUEUE_FIELDS), { webhook } = read;
  if (typeof webhook === "object" && webhook !== null && "headers" in webhook) {
    ownNames(`queues.${name}.webhook.headers`, webhook.headers);
  }
  return read;
}

/** @throws AppError `deploy_invalid` where a declaration has no schema. */
function assertSchema(path: string, declared: unknown): void {
  const { schema } = pick(declared, ["schema"]);
  const isSchema = (typeof schema === "object" || typeof schema === "function") && schema !== null &&
    "~standard" in schema;
  if (isSchema) return;
  throw deployInvalid([{
    path,
    value: show(schema),
    expected: "a Standard Schema, such as z.object({ … })",
  }]);
}

/**
 * Returns the declaration of a table without its schema, which stays in the isolate: the site only learns that there is
 * one.
 */
function readTable(name: string, table: unknown): unknown {
  assertSchema(`tables.${name}.schema`, table);
  const read = pick(table, ["key", "indexes", "consistency", "at"]);
  return {
    ...read,
    ...Object.hasOwn(read, "indexes") ? { indexes: ownNames(`tables.${name}.indexes`, read["indexes"]) } : {},
  };
}

/** Returns the named fields, own and inherited ones alike: a class has its statics so. */
function pick(from: unknown, names: readonly string[]): Record<string, unknown> {
  if ((typeof from !== "object" && typeof from !== "function") || from === null) return { "": from };
  return defined(Object.fromEntries(names.map((n) => [n, (from as Record<string, unknown>)[n]])));
}

const defined = (from: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(from).filter(([, value]) => value !== undefined));

function each(group: unknown, read: (name: string, value: unknown) => unknown): unknown {
  if (typeof group !== "object" || group === null) return group;
  return Object.fromEntries(Object.entries(group).map(([n, value]) => [n, read(n, value)]));
}

/** Yields names that a schema's records leave out without a word (M3). `value` is nested as deep as any manifest is. */
function* lostNames(value: unknown, path = "", depth = 0): Iterable<DeployIssue> {
  if (typeof value !== "object" || value === null || depth > MANIFEST_DEPTH) return;
  const at = (name: string) => (path === "" ? name : `${path}.${name}`);
  if (Object.hasOwn(value, LOST_NAME)) {
    yield {
      path: at(LOST_NAME),
      value: LOST_NAME,
      expected: "another name: JavaScript's objects have this one",
    };
  }
  for (const [name, inner] of Object.entries(value)) {
    if (name !== LOST_NAME) yield* lostNames(inner, at(name), depth + 1);
  }
}

/**
 * Refuses a group that inherits names: `{ __proto__: … }` as it is written in a module declares nothing, but sets the
 * prototype.
 */
function ownNames(path: string, group: unknown): unknown {
  if (typeof group !== "object" || group === null || Array.isArray(group)) return group;
  const above = Object.getPrototypeOf(group) as unknown;
  if (above === null || above === Object.prototype) return group;
  throw deployInvalid([{
    path,
    value: show(group),
    expected: "a plain object, which inherits nothing: __proto__ is no name",
  }]);
}

/** Yields issues that no single field shows. */
function* crossIssues(manifest: Manifest): Iterable<DeployIssue> {
  const jobs = Object.keys(manifest.cron);
  if (jobs.length > 0 && !manifest.handlers.includes("scheduled")) {
    yield { path: "cron", value: show(jobs), expected: "a scheduled handler, which is what they run" };
  }
  if (jobs.length > CRON_JOBS_MAX) {
    yield { path: "cron", value: `${jobs.length} jobs`, expected: `at most ${CRON_JOBS_MAX}` };
  }
  const chars = JSON.stringify(manifest).length;
  if (chars > MANIFEST_CHARS_MAX) {
    yield {
      path: "default",
      value: `${chars} characters of JSON without its functions`,
      expected: `at most ${MANIFEST_CHARS_MAX}: what is large belongs into the module or into static files`,
    };
  }
  yield* routeIssues(Object.keys(manifest.routes));
  yield* webhookIssues(manifest);
  for (const [table, { key, indexes }] of Object.entries(manifest.tables)) {
    if (new Set(key).size < key.length) {
      yield { path: `tables.${table}.key`, value: show(key), expected: "each field once" };
    }
    for (const [index, fields] of Object.entries(indexes)) {
      if (new Set(fields).size === fields.length) continue;
      yield { path: `tables.${table}.indexes.${index}`, value: show(fields), expected: "each field once" };
    }
  }
}

/** Yields issues of queues that have an endpoint: each queue is worked off in one way. */
function* webhookIssues({ queues, secrets, handlers }: Manifest): Iterable<DeployIssue> {
  const posted = Object.entries(queues).filter(([, { webhook }]) => webhook !== undefined);
  for (const [queue, { webhook, pull, batchMax, batchWaitMs }] of posted) {
    const path = `queues.${queue}`, name = webhook?.secret ?? "";
    if (pull === true) {
      yield { path: `${path}.pull`, value: "true", expected: "either pull: true or a webhook, not both" };
    }
    if (batchMax !== undefined || batchWaitMs !== undefined) {
      const expected = "neither batchMax nor batchWaitMs: a webhook is posted one message at a time";
      yield { path, value: show({ batchMax, batchWaitMs }), expected };
    }
    const secret = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
    if (secret === undefined || secret.at === "root") {
      const expected = secret === undefined
        ? "the name of a secret that the app declares in secrets"
        : 'a secret without at: "root": messages are posted from wherever they are';
      yield { path: `${path}.webhook.secret`, value: show(name), expected };
    }
  }
  if (posted.length === 0) return;
  const isLeft = Object.values(queues).some(({ webhook, pull }) => webhook === undefined && pull !== true);
  if (handlers.includes("queue") && !isLeft) {
    yield {
      path: "queue",
      value: "a function",
      expected:
        `no queue handler, or a queue without webhook or pull: ${posted[0]?.[0]} has a webhook, which is ` +
        "given the messages instead, and the handler would be given none",
    };
  }
  const open = posted.reduce((sum, [, { concurrency = QUEUE_DEFAULTS.concurrency }]) => sum + concurrency, 0);
  if (open > WEBHOOKS_OPEN_MAX) {
    yield {
      path: "queues",
      value: `concurrency ${open} over all webhooks`,
      expected: `at most ${WEBHOOKS_OPEN_MAX}: each is a connection of every site`,
    };
  }
}

/** Yields issues of routes. Their number is looked at first, as reading a pattern makes an automaton of it. */
function* routeIssues(routes: readonly string[]): Iterable<DeployIssue> {
  if (routes.length > ROUTES_MAX) {
    return yield { path: "routes", value: `${routes.length} routes`, expected: `at most ${ROUTES_MAX}` };
  }
  const patterns = routes.filter((route) => !isPlainRoute(route));
  if (patterns.length > PATTERNS_MAX) {
    return yield {
      path: "routes",
      value: `${patterns.length} patterns`,
      expected: `at most ${PATTERNS_MAX}, beside paths and beginnings of paths such as /login/*`,
    };
  }
  const all = new RoutePatterns();
  for (const route of patterns) {
    const problem = routeProblem(route, all);
    if (problem === null) continue;
    const expected = `a URLPattern path that begins with /, such as /login/* or /users/:id: ${problem}`;
    yield { path: `routes.${route.slice(0, 200)}`, value: show(route), expected };
  }
}

function readable(issue: z.core.$ZodIssue, root: unknown): DeployIssue {
  let at: unknown = root;
  for (const part of issue.path) {
    at = typeof at === "object" && at !== null ? Reflect.get(at, part) : undefined;
  }
  const path = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    return { path, value: show(issue.keys), expected: "only known fields" };
  }
  if (issue.code === "invalid_key") {
    const key = issue.path.at(-1);
    return { path, value: show(key), expected: issue.issues[0]?.message ?? issue.message };
  }
  return { path, value: show(at), expected: issue.message };
}

function show(value: unknown): string {
  if (typeof value === "function") return "a function";
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200);
  } catch {
    return String(value).slice(0, 200);
  }
}

function deployInvalid(issues: readonly DeployIssue[]): AppError {
  const text = issues.map((i) => `${i.path} is ${i.value}; expected: ${i.expected}`).join("\n");
  return new AppError("deploy_invalid", `the app can't be deployed:\n${text}`, { issues });
}
