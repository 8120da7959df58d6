/**
 * The platform's own paths, `/_sojourn/…`: health, readiness, the sites, the client library, status and metrics for
 * operators, admin calls, queues for programs outside, a session's token, starting a session over.
 *
 * PF2  Outside dev, everything but health, readiness, sites, the client library and what a session does with its own
 *      token needs an operator's token. In dev a call without a token is an admin's, unless a page made it
 *      (page_calls.ts) or the name is not this machine's own.
 */
import type { Role, TokenHolder, TokenRoles } from "../deploy/mod.ts";
import { type AgentScope, allows, type QueueScope } from "../deploy/roles.ts";
import { PROMETHEUS_TYPE } from "../telemetry/mod.ts";
import { addressOf, isLoopback } from "./address.ts";
import { madeByPage, preflight } from "./page_calls.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { clearedCookie, isCrossSite } from "./cookies.ts";

/** Readiness of a site, and the state of its connection to the parent. */
export type SiteReadiness =
  | { readonly ready: true; readonly parent: "connected" | "unreachable" | "none" }
  | {
    readonly ready: false;
    readonly code: "not_ready" | "draining" | "disk_failed";
    readonly detail: string;
  };

/** A change that an operator asked for; role `none` where the caller has no valid token. */
export interface AdminCall {
  readonly by?: string;
  readonly role: Role | "none";
  readonly call: string;
}

/** Services of the site that the platform's paths use. */
export interface PlatformServices {
  readonly site: string;
  readonly dev: boolean;
  readonly adminTokens: TokenRoles;
  readonly readiness: () => SiteReadiness;
  readonly sites: () => { id: string; url: string; tier: string }[];
  /** Apps that have hosts of their own, by host. */
  readonly hosts: () => ReadonlyMap<string, string> | undefined;
  /** Answers with the token of the request's session; null until the site is ready. */
  readonly session: () => ((request: Request) => Promise<Response>) | null;
  /** The client library as a module for browsers. */
  readonly client: (request: Request) => Promise<Response>;
  readonly status: () => unknown;
  /** Prometheus text, for scrapers. */
  readonly metrics: () => string;
  /** Faults on purpose (runtime/chaos); null where the site file lacks `chaos: true`. */
  readonly chaos: { handle(request: Request, path: string, role: Role | null): Promise<Response> } | null;
  /** The dashboard's page and its parts. */
  readonly dashboard: (request: Request, path: string) => Promise<Response>;
  /** The admin handlers; null until the site is ready. */
  readonly admin: () => ((request: Request, role: Role | null) => Response | Promise<Response>) | null;
  /** Handles agents that connect (runtime/origins); null until the site is ready. */
  readonly agents?: () =>
    | ((request: Request, path: string, scope: AgentScope | null) => Response | Promise<Response>)
    | null;
  /** Handles programs that send messages to queues or consume them (runtime/queues); null until the site is ready. */
  readonly queues?: () =>
    | ((request: Request, path: string, scope: QueueScope | null) => Response | Promise<Response>)
    | null;
  /** Logs a change that was asked for; the call's path names things, and never has a secret's value. */
  readonly adminCall?: (
    /** Level of the line: `debug` for what the dev process tells each site of one fault that somebody asked for. */
    level: "info" | "debug",
    call: AdminCall,
  ) => void;
}

const ROOT = "/_sojourn/";
/**
 * Characters of a call that the log shows: a caller without a token can fill the log too, and should not do so by the
 * page.
 */
const CALL_CHARS_MAX = 200;

/** Answers one of the platform's paths. */
export function platform(
  services: PlatformServices,
  request: Request,
  path: string,
): Response | Promise<Response> {
  const name = path.slice(ROOT.length);
  const asked = preflight(request, path);
  if (asked !== null) return asked;
  switch (name) {
    case "healthz":
      return Response.json({ site: services.site });
    case "readyz":
      return readyz(services);
    case "sites":
      return sites(services, request);
    case "status":
      return refuseUnless(services, request, "read") ?? Response.json(services.status());
    case "metrics":
      return refuseUnless(services, request, "read") ?? metrics(services.metrics());
    case "session":
      return session(services, request);
    case "session/reset":
      return reset(request);
    case "client.js":
      return services.client(request);
  }
  if (name === "dashboard" || name.startsWith("dashboard/")) return services.dashboard(request, path);
  if (name.startsWith("agent/")) return agentOf(services, request, name.slice("agent/".length));
  if (name.startsWith("queues/")) return queuesOf(services, request, name.slice("queues/".length));
  if (!name.startsWith("admin/")) throw new Problem("not_found", `${path} is no path of the platform`);
  const admin = /^admin\/chaos(\/|$)/.test(name) ? chaosOf(services, path) : services.admin();
  if (admin === null) throw new Problem("not_ready", "this site is not ready for admin calls");
  const holder = operatorOf(services, request);
  // A blob changes nothing before a deploy names it, and a deploy may send thousands: uploads are not logged as
  // changes.
  const changes = request.method !== "GET" && request.method !== "HEAD" && !name.startsWith("admin/blobs/");
  if (changes) {
    services.adminCall?.(name.startsWith("admin/chaos/") ? "debug" : "info", {
      ...(typeof holder?.name === "string" ? { by: holder.name } : {}),
      role: holder?.role ?? "none",
      call: `${request.method} /${name}`.slice(0, CALL_CHARS_MAX),
    });
  }
  return admin(request, holder?.role ?? null);
}

/**
 * Returns the handler for agents, which checks the caller's scope: an agent sees what sessions say, and speaks for
 * those that it attaches.
 */
function agentOf(
  services: PlatformServices,
  request: Request,
  path: string,
): Response | Promise<Response> {
  const holder = holderOf(services, request);
  if (holder === null) {
    throw new Problem(
      "admin_token_invalid",
      "this needs a token of agents, or one with the role admin: Authorization: Bearer …",
    );
  }
  if (holder.role !== "agent" && holder.role !== "admin") {
    throw new Problem("admin_role", `this needs a token of agents, or the role admin, not ${holder.role}`);
  }
  const agents = services.agents?.() ?? null;
  if (agents === null) throw new Problem("not_ready", "this site is not ready for agents");
  return agents(request, path, holder.role === "agent" ? holder.scope : null);
}

/** Returns the handler for who sends to queues or consumes from them; it checks the caller's scope. */
function queuesOf(
  services: PlatformServices,
  request: Request,
  path: string,
): Response | Promise<Response> {
  const holder = holderOf(services, request);
  if (holder === null) {
    throw new Problem(
      "admin_token_invalid",
      "this needs a token that may send to the queue or consume from it, or one with the role admin: " +
        "Authorization: Bearer …",
    );
  }
  if (holder.role !== "queue" && holder.role !== "admin") {
    throw new Problem("admin_role", `this needs a token of queues, or the role admin, not ${holder.role}`);
  }
  const queues = services.queues?.() ?? null;
  if (queues === null) throw new Problem("not_ready", "this site is not ready for messages");
  return queues(request, path, holder.role === "queue" ? holder.scope : null);
}

/** Uses of the tokens that are no operator's. */
const USES = {
  agent: "this is a token of agents: it opens what sojourn agent asks for, and nothing else",
  queue: "this is a token of queues: it sends messages to them or consumes them, and nothing else",
} as const;

/** Returns the operator who makes a call; null: there is no valid token. @throws Problem for a token of others */
function operatorOf(
  services: PlatformServices,
  request: Request,
): { readonly role: Role; readonly name: string | null } | null {
  const holder = holderOf(services, request);
  if (holder?.role === "agent" || holder?.role === "queue") {
    throw new Problem("admin_role", USES[holder.role]);
  }
  return holder;
}

/** Returns the handler of faults, whether the site is ready or not: a fault may be why it is not. */
function chaosOf(services: PlatformServices, path: string): ReturnType<PlatformServices["admin"]> {
  const { chaos } = services;
  if (chaos !== null) return (request, role) => chaos.handle(request, path, role);
  throw new Problem(
    "chaos_refused",
    `site ${services.site} takes no faults: only those do that \`deno task dev\` started with "chaos": true`,
  );
}

function readyz(services: PlatformServices): Response {
  const readiness = services.readiness();
  if (!readiness.ready) throw new Problem(readiness.code, readiness.detail);
  const { parent } = readiness;
  return Response.json({ site: services.site, ...(parent === "none" ? {} : { parent }) });
}

/**
 * Answers with the sites of the cluster. At an app's own host the answer names the app: its pages then know where the
 * app is at the other sites.
 */
function sites(services: PlatformServices, request: Request): Response {
  const at = addressOf(`${new URL(request.url).origin}/`, services.hosts());
  const headers = {
    "cache-control": "no-store",
    "sojourn-site": services.site,
    ...at.kind === "app" ? { "sojourn-app": at.app } : {},
  };
  return Response.json(services.sites(), { headers });
}

function session(services: PlatformServices, request: Request): Promise<Response> {
  if (request.method !== "GET") {
    throw new Problem("method_not_allowed", `GET tells a session's token, not ${request.method}`);
  }
  const answer = services.session();
  if (answer === null) throw new Problem("not_ready", "this site is not ready for sessions");
  return answer(request);
}

/** Returns the holder of a call's token (PF2). */
function holderOf(services: PlatformServices, request: Request): TokenHolder | null {
  const holder = services.adminTokens.holderOf(request.headers);
  if (holder !== null || !services.dev) return holder;
  if (request.headers.has("authorization")) return null;
  const isOurs = isLoopback(new URL(request.url).hostname) && !madeByPage(request);
  return isOurs ? { role: "admin", name: null } : null;
}

function refuseUnless(services: PlatformServices, request: Request, needed: Role): Response | null {
  const role = operatorOf(services, request)?.role;
  if (role === undefined) {
    throw new Problem(
      "admin_token_invalid",
      `this needs a token with the role ${needed}: Authorization: Bearer …`,
    );
  }
  if (!allows(role, needed)) throw new Problem("admin_role", `this needs the role ${needed}, not ${role}`);
  return null;
}

const metrics = (text: string): Response =>
  new Response(text, { headers: { "content-type": PROMETHEUS_TYPE, "cache-control": "no-store" } });

/**
 * Starts a session over. Only for a page of this very origin, or a person's own program: another's page would end
 * sessions that are not its own.
 */
function reset(request: Request): Response {
  const { method, headers } = request;
  if (method !== "POST") throw new Problem("method_not_allowed", `POST starts a session over, not ${method}`);
  const { host, protocol } = new URL(request.url);
  const fetchSite = headers.get("sec-fetch-site");
  const isOther = fetchSite === null
    ? isCrossSite({ method, fetchSite, origin: headers.get("origin"), host })
    : fetchSite !== "same-origin" && fetchSite !== "none";
  if (isOther) {
    throw new Problem("cross_site", "a page of another origin can't start this browser's session over");
  }
  const isSecure = protocol === "https:" || headers.get("x-forwarded-proto") === "https";
  return new Response(null, {
    status: 204,
    headers: { "set-cookie": clearedCookie(isSecure), "cache-control": "no-store" },
  });
}
