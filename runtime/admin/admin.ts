/**
 * The admin handlers that every site mounts at `/_sojourn/admin`: a Hono app over the control plane's rows.
 *
 * Reads are answered where they arrive, from the rows that every site has, so that they work with the root away.
 * Changes are forwarded to the root over the links. The caller's role is decided by the site where the request
 * arrives and travels with it, since a link is authenticated.
 *
 * A1  A change that was answered is durable at the root.
 * A2  A site is reported only when it serves the version: its table points to it and it holds the bundle.
 */
import { type Context, Hono } from "hono";
import { type SiteRecord, StoreUnavailable } from "../../store/api.ts";
import { problemResponse } from "../gateway/problem.ts";
import { ADMIN_PATH } from "../deploy/client.ts";
import type { AppTable, SystemStore } from "../deploy/app_table.ts";
import type { Change, Deployments, Refusal } from "../deploy/deployments.ts";
import { readRows } from "./inspection.ts";
import { logRoutes, type LogServices } from "./logs.ts";
import { refusedRole, roleNeeded } from "./access.ts";
import type { Role } from "../deploy/roles.ts";
import { BUNDLE_BYTES_MAX, decodeSystem, SITES, VERSION } from "../deploy/records.ts";

/** A site that restarts is back within a second or two; asking it this often costs it nothing. */
const ASK_AGAIN_MS = 200;

/** What the admin handlers need of their site. */
export interface AdminServices {
  readonly site: string;
  readonly system: SystemStore;
  readonly apps: AppTable;
  /** Only at the root. */
  readonly deployments: Deployments | null;
  /** Sends an admin request to the root over the links, with the caller's role. */
  forwardToRoot(request: Request, role: Role): Promise<Response>;
  /** Sends an admin request to any other site over the links. */
  forward(site: string, request: Request, role: Role): Promise<Response>;
  /** Makes an isolate of a version before its first request, where the site wants that. */
  warm?(app: string, version: string): Promise<void>;
  /** What the site keeps to be looked at. */
  readonly observed?: Omit<LogServices, "site" | "forward" | "nowMs">;
  nowMs(): number;
  /** A log line. */
  note(event: string, detail?: Record<string, unknown>): void;
}

/** What the gateway passes with each request: `admin.fetch(request, { role })`. */
export interface AdminBindings {
  /** null: no valid token. */
  role: Role | null;
}

/** Where a version has arrived. */
export interface Placement {
  readonly sites: { id: string; ms: number }[];
  readonly missing: string[];
}

type AdminContext = Context<{ Bindings: AdminBindings }>;

/** The longest that a request may wait for sites: a cluster slower than that is broken. */
const WAIT_MS_MAX = 600_000;

/** The admin handlers of a site. */
export function adminApp(services: AdminServices): Hono<{ Bindings: AdminBindings }> {
  const app = new Hono<{ Bindings: AdminBindings }>().basePath(ADMIN_PATH);
  app.onError((error) => {
    if (error instanceof StoreUnavailable) return problemResponse("store_unreachable", error.message);
    services.note("admin_failed", { error: error.stack ?? error.message });
    return problemResponse("admin_failed", error.message);
  });
  app.notFound((c) =>
    problemResponse("not_available", `${c.req.method} ${new URL(c.req.url).pathname} is not available`)
  );
  app.use("*", async (c, next) => refusedRole(c.env.role, roleNeeded(c)) ?? await next());

  app.get("/apps", (c) => c.json(services.apps.list().map(describeApp)));
  app.get("/apps/:app/versions", (c) => {
    const live = services.apps.get(c.req.param("app"));
    if (live === undefined) return unknownApp(c.req.param("app"));
    return c.json(
      live.record.versions.map((entry) => ({ ...entry, current: entry.version === live.record.current }))
        .reverse(),
    );
  });
  app.get("/sites", async (c) => c.json(await readSites(services.system)));
  app.get("/ready/:app/:version", async (c) => {
    const { app: name, version } = c.req.param();
    if (!VERSION.test(version)) return problemResponse("version_unknown", `${version} is no version`);
    const ready = await readyHere(services, name, version, waitMs(c));
    return ready
      ? c.json({ site: services.site })
      : problemResponse("not_ready", `${name} ${version} has not arrived here`);
  });

  app.get("/apps/:app/rows", async (c) => {
    const name = c.req.param("app");
    if (services.apps.get(name) === undefined) return unknownApp(name);
    if (services.deployments === null) return await services.forwardToRoot(c.req.raw, "admin");
    return await readRows(services.system, name, new URL(c.req.url).searchParams);
  });

  if (services.observed !== undefined) {
    const { site, forward, nowMs, observed } = services;
    logRoutes(app, { ...observed, site, forward, nowMs });
  }

  app.post("/deploy", (c) => changing(services, c, (deployments) => deploy(deployments, c)));
  app.post("/apps/:app/rollback", (c) =>
    changing(
      services,
      c,
      (deployments) => deployments.rollback(c.req.param("app"), c.req.query("version")),
    ));
  return app;
}

const unknownApp = (name: string): Response =>
  problemResponse("app_unknown", `no app is called ${JSON.stringify(name)}`);

function describeApp(live: ReturnType<AppTable["list"]>[number]) {
  const newest = live.record.versions.find((entry) => entry.version === live.record.current);
  return {
    app: live.name,
    version: live.current.version,
    versions: live.record.versions.length,
    deployedMs: newest?.createdMs ?? 0,
    tables: Object.keys(live.current.manifest.tables),
  };
}

/** How long the caller waits for sites; a bad number counts as none. */
function waitMs(c: AdminContext): number {
  const asked = Number(c.req.query("waitMs") ?? 0);
  return Number.isFinite(asked) ? Math.min(Math.max(asked, 0), WAIT_MS_MAX) : 0;
}

/** Runs a change at the root, or forwards the request there; then waits for the sites. */
async function changing(
  services: AdminServices,
  c: AdminContext,
  change: (deployments: Deployments) => Promise<Change | Refusal>,
): Promise<Response> {
  if (services.deployments === null) {
    return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
  }
  const result = await change(services.deployments);
  if (!result.ok) {
    const more = result.place === undefined ? {} : { place: result.place };
    return problemResponse(result.code, result.message, more);
  }
  const placement = await placed(services, result, waitMs(c));
  if (placement.missing.length === 0) await services.deployments.settle(result.app);
  const { app, version, changed } = result;
  return Response.json({ app, version, changed, ...placement });
}

async function deploy(deployments: Deployments, c: AdminContext): Promise<Change | Refusal> {
  const bundle = await readLimited(c.req.raw.body, BUNDLE_BYTES_MAX);
  if (bundle === null) {
    return { ok: false, code: "limit_bundle", message: `a bundle has at most ${BUNDLE_BYTES_MAX} bytes` };
  }
  const app = c.req.query("app");
  const fallback = c.req.query("fallback");
  return await deployments.deploy({
    bundle,
    ...(app === undefined ? {} : { app }),
    ...(fallback === undefined ? {} : { fallback }),
  });
}

/** A body of at most `bytesMax`, or null where it is longer; the rest is not read. */
async function readLimited(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > bytesMax) return null;
    parts.push(part);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The sites that the cluster knows, root first. */
export async function readSites(system: SystemStore): Promise<SiteRecord[]> {
  const rows = await system.list(SITES);
  return rows.flatMap((row) => row.value ? [decodeSystem(row.value) as SiteRecord] : [])
    .sort((a, b) => a.depth - b.depth || (a.id < b.id ? -1 : 1));
}

/** Asks every site to report when it serves a version, until all have or the time is over. */
async function placed(services: AdminServices, change: Change, timeoutMs: number): Promise<Placement> {
  const begunMs = services.nowMs();
  const sites: Placement["sites"] = [];
  const missing: string[] = [];
  const ask = async (id: string) => {
    const ready = id === services.site
      ? await readyHere(services, change.app, change.version, timeoutMs)
      : await readyThere(services, id, change, timeoutMs);
    if (ready) sites.push({ id, ms: Math.round(services.nowMs() - begunMs) });
    else missing.push(id);
  };
  await Promise.all((await readSites(services.system)).map((site) => ask(site.id)));
  return { sites, missing };
}

/** Asks a site over the links, again while it does not answer: it may be starting. */
async function readyThere(
  services: AdminServices,
  site: string,
  change: Change,
  timeoutMs: number,
): Promise<boolean> {
  const url = `http://${site}${ADMIN_PATH}/ready/${change.app}/${change.version}?waitMs=${timeoutMs}`;
  const over = new AbortController();
  const asking = async () => {
    while (!over.signal.aborted) {
      try {
        const answer = await services.forward(site, new Request(url, { signal: over.signal }), "read");
        await answer.body?.cancel();
        if (answer.ok) return true;
      } catch (error) {
        if (!over.signal.aborted) services.note("site_silent", { site, error: String(error) });
      }
      await pause(ASK_AGAIN_MS, over.signal);
    }
    return false;
  };
  const asked = asking();
  const ready = await within(asked, timeoutMs);
  over.abort();
  return ready;
}

/** Resolves after a time, or at once when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** Waits until this site serves a version of an app (A2). */
async function readyHere(
  services: AdminServices,
  app: string,
  version: string,
  timeoutMs: number,
): Promise<boolean> {
  const { apps } = services;
  const shown = Promise.withResolvers<boolean>();
  const look = () => apps.get(app)?.current.version === version && shown.resolve(true);
  const unlisten = apps.onChange(look);
  look();
  try {
    await apps.refresh();
    if (!await within(shown.promise, timeoutMs)) return false;
    const fetched = Promise.resolve(apps.get(app)?.current.bundle())
      .then(() => services.warm?.(app, version))
      .then(() => true);
    return await within(fetched, timeoutMs);
  } finally {
    unlisten();
  }
}

/** What a promise says, or false when it has said nothing in time or failed. A limit of 0 still takes one turn. */
function within(promise: Promise<boolean>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limitMs);
    promise.then(resolve, () => resolve(false)).finally(() => clearTimeout(timer));
  });
}
