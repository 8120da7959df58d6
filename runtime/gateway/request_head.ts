/**
 * A request's head, read in one pass: the headers that the app sees, and those that the gateway acts on.
 *
 * RH1  The header, cookie and query parameter that carry a session token never reach an app: a token is a bearer
 *      credential of every app's session.
 * RH2  Header bytes are counted before anything is done with them.
 */
import type { Address } from "./address.ts";
import { isCrossSite, SESSION_COOKIE, splitCookie } from "./cookies.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

/** Name of the header that carries tokens, in requests and answers. */
export const SESSION_HEADER = "sojourn-session";
/** Name of the header by which a client asks where its answer comes from, and for its timing. */
export const TIMING_HEADER = "sojourn-timing";

/** Clients whose answers say where they ran, with which version and what took how long: those that ask, or all. */
export type AnswerHeaders = "asked" | "always";

/** Head of a request: the parts that the gateway acts on, and those that the app gets. */
export interface RequestHead {
  readonly method: string;
  /** URL as the app sees it: origin + target, without the token. */
  readonly url: string;
  /** Path and query as the app sees them. */
  readonly target: string;
  readonly headers: [string, string][];
  /** Tokens as presented; the first rule of precedence is applied: header, query (WebSocket), cookie. */
  readonly tokens: readonly string[];
  readonly tokenFrom: "header" | "query" | "cookie" | "none";
  /** True where the client asks for a new session (`Sojourn-Session-Reset: 1`); its tokens are ignored then. */
  readonly reset: boolean;
  /** True where the request asks for a WebSocket. */
  readonly upgrade: boolean;
  /** Subprotocols of the platform that the client offers for a WebSocket: an app is told of its own only. */
  readonly offers: readonly string[];
  /** Value of `Content-Length`; -1 where not given. */
  readonly contentLength: number;
  /** Version that a preview asks for. */
  readonly version: string | null;
  /** True where the client came by https, here or at a proxy before us. */
  readonly secure: boolean;
  /** True where another site's page made the browser send it, to change something (cookies.ts, CK3). */
  readonly isCrossSite: boolean;
  /** True for a browser's navigation, which a redirect to itself repairs. */
  readonly navigation: boolean;
  /** True where the client asks where its request ran, with which version, and what took how long. */
  readonly asksWhere: boolean;
}

/**
 * Reads the head of a request to an app.
 *
 * @throws Problem `limit_headers`.
 */
export function readHead(
  request: { readonly method: string; readonly headers: Iterable<[string, string]> },
  address: Extract<Address, { kind: "app" }>,
  headerBytesMax: number,
): RequestHead {
  const headers: [string, string][] = [];
  let bytes = address.target.length;
  let header: string | null = null;
  let plainCookie: string | null = null;
  let secureCookie: string | null = null;
  let fetchSite: string | null = null;
  let origin: string | null = null;
  let upgrade = false;
  let contentLength = -1;
  let version: string | null = null;
  let reset = false;
  let navigation = false;
  let asksWhere = false;
  const offers: string[] = [];
  let secure = address.origin.startsWith("https:");
  for (const pair of pairsOf(request.headers)) {
    const [name, value] = pair;
    bytes += name.length + value.length + 4; // ": " and CRLF
    switch (name) {
      case SESSION_HEADER:
        header = value;
        continue;
      case "sojourn-session-reset":
        reset = value === "1";
        continue;
      case "sojourn-version":
        version = value;
        asksWhere = true;
        continue;
      case TIMING_HEADER:
        asksWhere = true;
        continue;
      case "x-forwarded-prefix":
        continue;
      case "cookie": {
        const split = splitCookie(value);
        plainCookie = split.plain ?? plainCookie;
        secureCookie = split.secure ?? secureCookie;
        if (split.rest !== "") headers.push(split.rest === value ? pair : ["cookie", split.rest]);
        continue;
      }
      case "x-forwarded-proto":
        secure ||= value === "https";
        break;
      case "sec-websocket-protocol": {
        const split = splitProtocols(value);
        offers.push(...split.offers);
        if (split.rest !== "") headers.push(split.rest === value ? pair : [name, split.rest]);
        continue;
      }
      case "upgrade":
        upgrade = value.toLowerCase() === "websocket";
        break;
      case "content-length":
        contentLength = Number(value);
        break;
      case "origin":
        origin = value;
        break;
      case "sec-fetch-site":
        fetchSite = value;
        break;
      case "sec-fetch-mode":
        navigation = value === "navigate";
        break;
      case "accept":
        navigation ||= value.startsWith("text/html");
    }
    headers.push(pair);
  }
  if (bytes > headerBytesMax) {
    throw new Problem(
      "limit_headers",
      `request line and headers take ${bytes} bytes; at most ${headerBytesMax} are accepted`,
    );
  }
  if (address.prefix !== "") headers.push(["x-forwarded-prefix", address.prefix]);
  const query = upgrade ? takeQueryToken(address.target) : { token: null, target: address.target };
  const [tokens, tokenFrom] = presented(header, query.token, secure ? secureCookie : plainCookie);
  return {
    method: request.method,
    url: address.origin + query.target,
    target: query.target,
    headers,
    tokens: reset ? [] : tokens,
    tokenFrom,
    reset,
    upgrade,
    offers,
    contentLength,
    version,
    secure,
    isCrossSite: isCrossSite({
      method: request.method,
      fetchSite,
      origin,
      host: address.origin.slice(address.origin.indexOf("//") + 2),
    }),
    navigation: navigation && request.method === "GET",
    asksWhere,
  };
}

/** Returns headers as pairs. Headers' own forEach makes no iterator results: half the cost of iterating. */
function pairsOf(headers: Iterable<[string, string]>): Iterable<[string, string]> {
  if (!(headers instanceof Headers)) return headers;
  const pairs: [string, string][] = [];
  headers.forEach((value, name) => pairs.push([name, value]));
  return pairs;
}

function presented(
  header: string | null,
  query: string | null,
  cookie: string | null,
): [readonly string[], RequestHead["tokenFrom"]] {
  if (header !== null) return [header.split(",").map((token) => token.trim()), "header"];
  if (query !== null) return [query.split(",").map((token) => token.trim()), "query"];
  if (cookie !== null) return [[cookie], "cookie"];
  return [[], "none"];
}

/** Start of the names of the platform's subprotocols (docs/protocol/session-frames.md). */
const OUR_PROTOCOLS = "sojourn.";
/**
 * Subprotocol that the client library is answered with where it offered it and the app has a WebSocket of its own,
 * without a subprotocol.
 */
export const PLAIN_PROTOCOL = "sojourn.plain.1";

/** Takes the platform's subprotocols out of a `Sec-WebSocket-Protocol` header. */
export function splitProtocols(value: string): { offers: readonly string[]; rest: string } {
  if (!value.includes(OUR_PROTOCOLS)) return { offers: [], rest: value };
  const names = value.split(",").map((name) => name.trim());
  const isOurs = (name: string) => name.startsWith(OUR_PROTOCOLS);
  return { offers: names.filter(isOurs), rest: names.filter((name) => !isOurs(name)).join(", ") };
}

/**
 * Returns the subprotocol that a client is answered with: the chosen one, or {@link PLAIN_PROTOCOL} where there is none
 * and it was offered.
 */
export const answeredProtocol = (head: Pick<RequestHead, "offers">, chosen: string): string =>
  chosen === "" && head.offers.includes(PLAIN_PROTOCOL) ? PLAIN_PROTOCOL : chosen;

/** Takes the token out of a target's query. */
export function takeQueryToken(target: string): { token: string | null; target: string } {
  const at = target.indexOf("?");
  if (at < 0 || !target.includes(SESSION_COOKIE + "=", at)) return { token: null, target };
  let token: string | null = null;
  const rest: string[] = [];
  for (const part of target.slice(at + 1).split("&")) {
    if (part.startsWith(SESSION_COOKIE + "=")) token = decoded(part.slice(SESSION_COOKIE.length + 1));
    else rest.push(part);
  }
  return { token, target: target.slice(0, at) + (rest.length === 0 ? "" : "?" + rest.join("&")) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // no token of ours has an escape that does not decode; it is refused as malformed
  }
}
