/**
 * Makes an outgoing HTTP request to a checked address.
 *
 * Deno's own `fetch` resolves names by itself, after any check; node:http takes the address to connect to and
 * still verifies the certificate for the name.
 */
import { Buffer } from "node:buffer";
import type * as http from "node:http";
import { isIP } from "node:net";
import { Readable } from "node:stream";
import { isPublicAddress } from "./addresses.ts";
import { messageOf } from "./bodies.ts";
import type { EgressRules } from "./egress_rules.ts";

/** A request as the isolate sent it. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly [string, string][];
  readonly body: ReadableStream<Uint8Array> | null;
  readonly signal: AbortSignal;
}

/** The answer to an outgoing request. */
export interface OutgoingResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: [string, string][];
  readonly body: ReadableStream<Uint8Array> | null;
}

/** A fetch that is not allowed, or cannot be made. */
export class FetchRefused extends Error {
  override readonly name = "FetchRefused";
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

/** Headers that belong to one connection. */
const HOP_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Sends a request where the rules allow it.
 *
 * @throws FetchRefused `fetch_refused` for a host that is not declared or an address that is not allowed,
 * `fetch_failed` where the host cannot be reached.
 */
export async function sendChecked(request: OutgoingRequest, rules: EgressRules): Promise<OutgoingResponse> {
  const url = new URL(request.url);
  const address = await checkedAddress(url, rules);
  try {
    return await send(request, url, address);
  } catch (error) {
    throw new FetchRefused("fetch_failed", `fetch(${shownUrl(url)}): ${messageOf(error)}`);
  }
}

/** Returns a URL as messages show it, without its query, which often holds a key. */
export const shownUrl = (url: URL): string => url.origin + url.pathname;

/** Returns the address that a URL's host has, if the app may go there. */
export async function checkedAddress(url: URL, rules: EgressRules): Promise<string> {
  const refuse = (why: string) => new FetchRefused("fetch_refused", `fetch(${shownUrl(url)}): ${why}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refuse(`only http: and https: are possible, not ${url.protocol}`);
  }
  const port = portOf(url);
  const verdict = rules.verdict(url.hostname, port);
  if (!verdict.ok) throw refuse(verdict.why);
  const bare = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(bare) !== 0 ? [bare] : await resolve(url, bare, rules);
  const allowed = verdict.mayBePrivate ? addresses[0] : addresses.find(isPublicAddress);
  if (allowed !== undefined) return allowed;
  throw refuse(
    `${addresses.join(", ") || "no address"} is not a public address; ` +
      `the operator can permit ${url.hostname}:${port} by name (egress.private)`,
  );
}

async function resolve(url: URL, host: string, rules: EgressRules): Promise<readonly string[]> {
  try {
    return await rules.lookup(host);
  } catch (error) {
    throw new FetchRefused(
      "fetch_failed",
      `fetch(${shownUrl(url)}): ${host} was not found: ${messageOf(error)}`,
    );
  }
}

const portOf = (url: URL): number =>
  url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);

/**
 * Makes an agent for one request that knows no proxy: with `NODE_USE_ENV_PROXY` set, the default ones would hand the
 * name to the proxy of the site's environment, which looks it up by itself.
 */
function directAgent({ Agent }: Pick<typeof http, "Agent">): http.Agent {
  return new Agent({ proxyEnv: {} } as http.AgentOptions); // newer than the types that come with Deno
}

/**
 * Loads the client for a protocol with the first request that needs it: most of what a site would load of Node as it
 * starts.
 */
const clientOf = (protocol: string): Promise<Pick<typeof http, "Agent" | "request">> =>
  protocol === "https:" ? import("node:https") : import("node:http");

async function send(request: OutgoingRequest, url: URL, address: string): Promise<OutgoingResponse> {
  const client = await clientOf(url.protocol);
  const { promise, resolve, reject } = Promise.withResolvers<OutgoingResponse>();
  const family = isIP(address);
  const outgoing = client.request({
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: portOf(url),
    path: url.pathname + url.search,
    method: request.method,
    headers: headersOf(request, url),
    agent: directAgent(client),
    signal: request.signal,
    lookup: (_host, options, callback) => {
      const all = (options as { all?: boolean }).all === true;
      if (all) {
        (callback as (e: null, found: { address: string; family: number }[]) => void)(null, [{
          address,
          family,
        }]);
      } else callback(null, address, family);
    },
  });
  outgoing.on("response", (incoming) => resolve(responseOf(request, incoming)));
  outgoing.on("error", reject);
  if (request.body === null) outgoing.end();
  else {pump(request.body, outgoing).catch((error) =>
      outgoing.destroy(error instanceof Error ? error : undefined)
    );}
  return await promise;
}

function headersOf(request: OutgoingRequest, url: URL): Record<string, string | string[]> {
  const out: Record<string, string[]> = {};
  for (const [name, value] of request.headers) {
    const lower = name.toLowerCase();
    if (!HOP_HEADERS.has(lower)) (out[lower] ??= []).push(value);
  }
  for (const [name, value] of DEFAULT_HEADERS) out[name] ??= [value];
  if (out["authorization"] === undefined && url.username + url.password !== "") {
    const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    out["authorization"] = [`Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`];
  }
  return { ...out, host: url.host };
}

/** Headers that Deno's own fetch adds where the app sets none; the isolate decodes these encodings. */
const DEFAULT_HEADERS: readonly (readonly [string, string])[] = [
  ["accept", "*/*"],
  ["accept-encoding", "gzip,br"],
  ["accept-language", "*"],
  ["user-agent", navigator.userAgent],
];

async function pump(body: ReadableStream<Uint8Array>, outgoing: http.ClientRequest): Promise<void> {
  for await (const chunk of body) {
    if (!outgoing.write(chunk)) await new Promise<void>((resolve) => outgoing.once("drain", () => resolve()));
  }
  outgoing.end();
}

function responseOf(request: OutgoingRequest, incoming: http.IncomingMessage): OutgoingResponse {
  const headers: [string, string][] = [];
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    const name = incoming.rawHeaders[i] ?? "";
    if (!HOP_HEADERS.has(name.toLowerCase())) headers.push([name, incoming.rawHeaders[i + 1] ?? ""]);
  }
  const status = incoming.statusCode ?? 502;
  const empty = request.method === "HEAD" || status === 204 || status === 304;
  if (empty) incoming.resume();
  const body = empty ? null : Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
  return { status, statusText: incoming.statusMessage ?? "", headers, body };
}
