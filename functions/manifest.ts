/**
 * The manifest: the data fields of an app's default export, which the site acts on. An isolate reads it off the
 * evaluated module (`readManifest`); the site parses what the isolate sent with the same schema (`parseManifest`),
 * since everything from an isolate is outside data.
 *
 * M1  A manifest that parses is complete: every field is present, optional ones with their defaults.
 * M2  parseManifest(JSON of a manifest) is that manifest.
 */
import { z } from "zod";
import { cronProblem } from "./cron_times.ts";
import { AppError } from "./errors.ts";
import { ORIGIN_EXPECTED, originAddress } from "./origin_address.ts";
import { methodNames } from "./session_methods.ts";
import { SESSION_BASE } from "./session_slot.ts";

/** Names of tables, indexes, queues, secrets, variables, session classes and cron jobs. */
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

const queueSchema = z.strictObject({
  f: z.int().min(0).max(16).default(1),
  maxAttempts: z.int().min(1).max(1000).default(5),
});

/** A class with more, or longer ones, is called without being asked first. */
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
  /** What can be called; null: not known, of a version that was deployed before this was noted. */
  methods: z.array(z.string().max(METHOD_CHARS_MAX)).max(METHODS_MAX).nullable().default(null),
});

const routePattern = z.string().refine(isRoutePattern, {
  error: "a URLPattern path that begins with /, such as /login/*",
});
const cronExpression = z.string().max(256).superRefine((text, context) => {
  const problem = cronProblem(text);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});
const HOST = /^(?:(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;
const host = z.string().max(260).regex(HOST, {
  error: "a host or host:port in lower case, such as api.example, *.api.example or localhost:8080",
});

/** Each is a row at every site; the root runs few at a time. */
const CRON_JOBS_MAX = 100;
/** A manifest is one row, which every site holds and a change of it resends whole: as large as any row may be. */
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
  routes: z.record(routePattern, z.strictObject({ at: tier })).default({}),
  cron: z.record(name, cronExpression).default({}),
  fetchHosts: z.array(host).max(256).default([]),
  assets: z.string().min(1).max(1024).optional(),
  handlers: z.array(z.enum(["fetch", "scheduled", "queue"])),
}).refine((app) => app.handlers.length > 0 || app.assets !== undefined, {
  path: ["handlers"],
  error: "at least one handler (fetch, scheduled or queue), or assets",
});

/** What a site needs to know of an app. */
export type Manifest = z.infer<typeof manifestSchema>;

/** One reason why an app can't be deployed. */
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
 * The manifest of a module's default export.
 *
 * @throws AppError as {@link parseManifest}.
 */
export function readManifest(defaultExport: unknown): Manifest {
  if ((typeof defaultExport !== "object" && typeof defaultExport !== "function") || defaultExport === null) {
    throw deployInvalid([{
      path: "default",
      value: show(defaultExport),
      expected: "a default export with a fetch, scheduled or queue function",
    }]);
  }
  const app = defaultExport as Record<string, unknown>;
  const named = typeof defaultExport === "function" ? undefined : app["name"];
  return parseManifest(defined({
    name: typeof named === "string" ? named : undefined,
    tables: each(app["tables"], readTable),
    queues: each(app["queues"], (_, q) => pick(q, ["f", "maxAttempts"])),
    sessions: each(app["sessions"], readSession),
    secrets: app["secrets"],
    vars: app["vars"],
    // A Hono app has a `routes` array of its own.
    routes: Array.isArray(app["routes"]) ? undefined : app["routes"],
    cron: app["cron"],
    fetchHosts: app["fetchHosts"],
    assets: app["assets"],
    handlers: ["fetch", "scheduled", "queue"].filter((h) => typeof app[h] === "function"),
  }));
}

/** The class stays in the isolate; what is static of it is declared. */
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

/** The schema stays in the isolate: the site only learns that there is one. */
function readTable(name: string, table: unknown): unknown {
  const { schema } = pick(table, ["schema"]);
  if (
    (typeof schema !== "object" && typeof schema !== "function") || schema === null ||
    !("~standard" in schema)
  ) {
    throw deployInvalid([{
      path: `tables.${name}.schema`,
      value: show(schema),
      expected: "a Standard Schema, such as z.object({ … })",
    }]);
  }
  return pick(table, ["key", "indexes", "consistency", "at"]);
}

/** Own and inherited fields alike: a class has its statics so. */
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

/** What no single field shows. */
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

function isRoutePattern(pattern: string): boolean {
  if (!pattern.startsWith("/") || pattern.length > 1024) return false;
  try {
    new URLPattern({ pathname: pattern });
    return true;
  } catch {
    return false;
  }
}
