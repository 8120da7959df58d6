/**
 * The HTTP server of a site: every request of a client comes in at {@link Gateway.handle} and is for the platform, an
 * app, or the front page.
 *
 * GT1  A request always gets an answer; an error of ours is a problem, never an exception to `Deno.serve`.
 * GT2  Clients that an app's overload sends away are answered as fast as the site can afford (loop/refusal_pace.ts):
 *      the rest of the thread is for requests that are served, and for the platform's own requests, which are never
 *      sent away so.
 */
import type { AppQueues } from "../isolate/app_queues.ts";
import { acceptSocket, goneAnswer } from "../link/accept_socket.ts";
import { RefusalPace } from "../loop/refusal_pace.ts";
import { addressOf } from "./address.ts";
import type { AppGateway } from "./app_gateway.ts";
import type { Arrival, Outcome } from "./arrival.ts";
import { allowed, pageOrigin, shared } from "./cross_origin.ts";
import { Departures, SLOW_MS } from "./departures.ts";
import { refusalResponse } from "./link_requests.ts";
import { bridge, ClientSocket, type MessageSocket } from "./message_socket.ts";
import { readable } from "./page_calls.ts";
import { Problem, problemOf } from "../../functions/vocabulary/problem.ts";
import { answeredProtocol, type RequestHead } from "./request_head.ts";
import type { RequestTelemetry } from "./request_telemetry.ts";
import { clearedCookie } from "./cookies.ts";
import { IdleConnections, type IdleOptions } from "./idle_connections.ts";
import { isForPerson, stuckPage } from "./stuck_page.ts";
import {
  contentOf,
  isUpgrade,
  type RequestClient,
  Surplus,
  type SurplusOptions,
  withContent,
} from "./surplus.ts";

/** Path at which links over WebSocket connect. */
const LINK_PATH = "/_sojourn/link";
/** Path at which agents connect. */
const AGENT_PATH = "/_sojourn/agent/";
/** Path of programs that send messages and consume them: what they do may follow from what they heard elsewhere. */
const MESSAGES_PATH = "/_sojourn/queues/";

/** Services of the site that the gateway uses. */
export interface GatewayServices {
  /** Returns the app gateway; null until the site is ready. */
  readonly apps: () => AppGateway | null;
  /** Resolves when requests of apps, and to queues, may begin; null: at once (runtime/link/hold.ts). */
  readonly held?: () => Promise<void> | null;
  /** Apps that have hosts of their own, by host. */
  readonly hosts?: () => ReadonlyMap<string, string> | undefined;
  /** Returns the sites of the cluster: pages of one may call the others. */
  readonly sites: () => readonly { readonly url: string }[];
  readonly platform: (request: Request, path: string) => Response | Promise<Response>;
  readonly front: () => Response;
  /** Returns the longest WebSocket message that a client may send, in bytes, by the subprotocol that was agreed on. */
  readonly messageBytesMax: (protocol: string) => number;
  /** Returns the queues of an app at this site, in which what waits of it is counted. */
  readonly queues?: (app: string) => AppQueues;
  /** Takes the connection of another site that came over HTTP; resolves when it has ended. */
  readonly link: (socket: WebSocket, peer: Deno.Addr) => Promise<void>;
  readonly fault: (error: unknown) => void;
  /** Options of the watches over clients that go on sending while they are answered. */
  readonly surplus?: SurplusOptions;
  /** Options of the search for idle connections; absent: there is none. */
  readonly idle?: Omit<IdleOptions, "isAnswered">;
  readonly telemetry: RequestTelemetry;
}

/** Answers HTTP requests. */
export class Gateway {
  readonly #services: GatewayServices;
  readonly #sockets = new Set<ClientSocket>();
  readonly #departures = new Departures();
  readonly #refusals = new RefusalPace();
  readonly #surplus: Surplus;
  readonly #idle: IdleConnections | null;
  /** Requests answered since start. */
  requests = 0;

  constructor(services: GatewayServices) {
    this.#services = services;
    this.#surplus = new Surplus(services.surplus);
    const isAnswered = (peer: Deno.NetAddr) => this.#surplus.has(peer);
    this.#idle = services.idle === undefined ? null : new IdleConnections({ ...services.idle, isAnswered });
  }

  /** Number of requests for apps that wait for their answer. */
  get active(): number {
    return this.#departures.size + this.#refusals.size;
  }

  /** Handles a request of `Deno.serve`. */
  readonly handle = (request: Request, client: RequestClient): Response | Promise<Response> => {
    this.requests++;
    const { url, method } = request, host = request.headers.get("host");
    this.#surplus.asked(client, host);
    if (REFUSED_METHODS.has(method)) {
      return refusalResponse(new Problem("method_not_allowed", `${method} is for proxies: no app is asked`));
    }
    const address = addressOf(url, this.#services.hosts?.(), host);
    if (address.kind === "app") {
      const page = pageOrigin(request, address, {
        sites: this.#services.sites,
        hosts: this.#services.hosts?.(),
      });
      if (page === null) return this.#app(request, client, url, address);
      return allowed(request, page) ??
        this.#app(request, client, url, address).then((answer) => shared(answer, page));
    }
    if (address.kind === "front") return this.#services.front();
    if (address.kind === "invalid") {
      return refusalResponse(
        new Problem("query_invalid", "the Host header names no host, or another than the request"),
      );
    }
    if (address.path === LINK_PATH && isUpgrade(request)) return this.#link(request, client);
    if (address.path.startsWith(AGENT_PATH) && isUpgrade(request)) {
      return this.#agent(request, client, address.path);
    }
    return this.#platform(request, client, address.path);
  };

  /** Closes the open WebSockets, and ends all watches: the site is stopping. */
  close(): void {
    this.#departures.close();
    this.#refusals.close();
    this.#surplus.close();
    this.#idle?.close();
    for (const socket of this.#sockets) socket.close(1001, "the site is stopping");
  }

  /** Takes a link over WebSocket; the peer proves who it is in the link's own handshake, as on the link listener. */
  async #link(request: Request, client: RequestClient): Promise<Response> {
    const { remoteAddr } = client; // not readable after the upgrade
    const accepted = await acceptSocket(request);
    if (accepted === null) return goneAnswer();
    this.#idle?.upgraded({ remoteAddr });
    this.#services.link(accepted.socket, remoteAddr).catch((error) => this.#services.fault(error));
    return accepted.response;
  }

  /**
   * Takes an agent's WebSocket. All of the request that is needed is read first: after the upgrade nothing of it can
   * be.
   */
  async #agent(request: Request, client: RequestClient, path: string): Promise<Response> {
    const { remoteAddr } = client;
    try {
      const answer = await this.#services.platform(request, path);
      if (answer.status === 101) this.#idle?.upgraded({ remoteAddr });
      return answer;
    } catch (error) {
      this.#faulty(error);
      return refusalResponse(error);
    }
  }

  async #platform(request: Request, client: RequestClient, path: string): Promise<Response> {
    const content = contentOf(request);
    let isWatched = false;
    const watchSurplus = () => {
      if (!isWatched) this.#surplus.begin(request, client, content, request.signal);
      isWatched = true;
    };
    const slow = setTimeout(watchSurplus, SLOW_MS);
    try {
      const held = path.startsWith(MESSAGES_PATH) ? this.#services.held?.() ?? null : null;
      if (held !== null) await held;
      const { telemetry, platform } = this.#services, taken = withContent(request, content);
      const answer = await telemetry.operator.called(taken, path, (request) => platform(request, path));
      if (answer.status === 200) watchSurplus(); // it may stream
      return readable(request, path, answer);
    } catch (error) {
      this.#faulty(error);
      return readable(request, path, refusalResponse(error));
    } finally {
      clearTimeout(slow);
    }
  }

  async #app(
    request: Request,
    client: RequestClient,
    url: string,
    address: Extract<ReturnType<typeof addressOf>, { kind: "app" }>,
  ): Promise<Response> {
    let head: RequestHead | null = null;
    let response: Response;
    let failure: unknown;
    const content = contentOf(request);
    const watchSurplus = () => this.#surplus.begin(request, client, content, departure);
    const isForSocket = isUpgrade(request);
    const departure = this.#departures.begin(request, isForSocket ? undefined : watchSurplus);
    if (isForSocket) watchSurplus(); // surplus.ts SU7
    const { telemetry } = this.#services, { remoteAddr } = client;
    const arrival: Arrival = {
      method: request.method,
      url,
      headers: request.headers,
      content,
      signal: departure,
      remote: remoteAddr.transport === "tcp" ? remoteAddr.hostname : undefined,
      span: telemetry.arrived(request),
    };
    try {
      const held = this.#services.held?.() ?? null;
      if (held !== null) await held;
      const apps = this.#services.apps();
      if (apps === null) {
        throw new Problem("not_ready", "this site has not yet received what it needs to serve apps");
      }
      head = apps.head(arrival, address);
      const outcome = await apps.handle(arrival, head, address.app, null);
      this.#departures.done(departure); // an upgraded request cannot be read from now on
      response = outcome.kind === "response"
        ? outcome.response
        : await this.#upgrade(request, remoteAddr, address.app, {
          ...outcome,
          protocol: answeredProtocol(head, outcome.protocol),
        });
    } catch (error) {
      this.#faulty(error);
      failure = error;
      response = refused(error, head, address.prefix + address.target);
      arrival.isSentAway = problemOf(error)?.code === "overloaded";
    } finally {
      this.#departures.done(departure);
    }
    const turn = arrival.isSentAway === true ? this.#refusals.turn() : null; // GT2
    if ((arrival.isStreamed === true || turn !== null) && !departure.isSlow) watchSurplus();
    if (turn !== null) await turn;
    return telemetry.answered(arrival, response, departure.sinceMs, failure);
  }

  async #upgrade(
    request: Request,
    peer: Deno.Addr,
    app: string,
    outcome: Extract<Outcome, { kind: "socket" }>,
  ): Promise<Response> {
    const accepted = await this.#accept(request, outcome);
    if (accepted === null) return goneAnswer();
    const { socket, response } = accepted;
    this.#idle?.upgraded({ remoteAddr: peer });
    for (const [name, value] of outcome.headers) {
      if (name !== "sec-websocket-protocol") response.headers.append(name, value);
    }
    const { messageBytesMax, queues } = this.#services;
    const mine = new ClientSocket(socket, {
      messageBytesMax: messageBytesMax(outcome.protocol),
      queues: queues?.(app),
      peer,
    });
    this.#sockets.add(mine);
    bridge(mine, outcome.socket).finally(() => this.#sockets.delete(mine));
    return response;
  }

  /** Upgrades a request to the socket of an outcome. Null where the client has gone: the other end is told. */
  async #accept(
    request: Request,
    outcome: Extract<Outcome, { kind: "socket" }>,
  ): Promise<Deno.WebSocketUpgrade | null> {
    const { protocol, socket } = outcome;
    try {
      const accepted = await acceptSocket(request, protocol === "" ? {} : { protocol });
      if (accepted === null) closeUnheard(socket, GONE);
      return accepted;
    } catch (error) {
      closeUnheard(socket, PROTOCOL_ERROR);
      throw new Problem(
        "not_found",
        `this is no WebSocket handshake: ${error instanceof Error ? error.message : error}`,
      );
    }
  }

  #faulty(error: unknown): void {
    if (problemOf(error) === null) this.#services.fault(error);
  }
}

/** Close codes of RFC 6455. */
const GONE = 1001;
const PROTOCOL_ERROR = 1002;

/** Closes an end of a socket that has no other end: what it still says is dropped. */
function closeUnheard(socket: MessageSocket, code: number): void {
  if (socket.cut === undefined) socket.close(code, "");
  else socket.cut(code, "");
}

/** Methods of which no `Request` can be made. */
const REFUSED_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/**
 * Returns the answer to a request that the platform refused; a bad cookie is dropped, and a navigation tries again.
 * Where the cookie is a good one that can't be gone on with now, the person who navigates is asked what to do.
 */
function refused(error: unknown, head: RequestHead | null, path: string): Response {
  const answer = refusalResponse(error), known = problemOf(error);
  if (known !== null && isForPerson(known, head)) return stuckPage(known, answer);
  const badCookie = error instanceof Problem && error.code.startsWith("token_") &&
    head?.tokenFrom === "cookie";
  if (!badCookie) return answer;
  if (!head.navigation) {
    answer.headers.append("set-cookie", clearedCookie(head.secure));
    return answer;
  }
  return new Response(null, {
    status: 303,
    headers: {
      location: samePlace(path),
      "set-cookie": clearedCookie(head.secure),
      "cache-control": "no-store",
    },
  });
}

/** Returns a path as a location: one that begins with two slashes would name a host. */
const samePlace = (path: string): string => /^\/[\\/]/.test(path) ? "/." + path : path;
