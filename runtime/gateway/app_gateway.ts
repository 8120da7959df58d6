/**
 * Requests for apps: finds the app, reads the tokens, and runs the request here or at a site of the tier that its
 * route names.
 *
 * AG1  Bad tokens are refused at the site where they arrive, before a route or an isolate is looked at.
 * AG2  A request for a higher tier goes to the parent, which decides again: the nearest site of that tier runs it. The
 *      root runs everything, so that a route for "core" works in a tree without cores.
 */
import { MATCHED_CHARS_MAX } from "../../functions/route_pattern.ts";
import type { AppTable, LiveApp, LiveVersion } from "../deploy/app_table.ts";
import type { Tier } from "../../functions/define.ts";
import { APP_NAME } from "../deploy/records.ts";
import { takesPart } from "../deploy/rollout.ts";
import { addressOf, pathOf } from "./address.ts";
import type { AppRunner } from "./app_runner.ts";
import { type Arrival, type Outcome, respond } from "./arrival.ts";
import { answerAsset, type AssetServices } from "./asset_answer.ts";
import type { GoneSignal } from "./departures.ts";
import {
  answerResponse,
  decodeAnswerHead,
  encodeRequestHead,
  FORWARD_KIND,
  type ForwardedRequest,
  nextHop,
} from "./forward.ts";
import type { RequestLinks } from "../../functions/vocabulary/site_links.ts";
import { LinkSocket } from "./link_socket.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { readHead, type RequestHead, SESSION_HEADER, TIMING_HEADER } from "./request_head.ts";
import { describeApp } from "./request_spans.ts";
import { problemCode, type RequestTelemetry } from "./request_telemetry.ts";
import { sessionCookie } from "./cookies.ts";
import { type RequestToken, type SessionTokens, wantsCookie } from "./session_tokens.ts";

/** Services of the site that the app gateway uses. */
export interface AppGatewayServices {
  readonly tier: Tier;
  readonly parent: string | null;
  readonly links: RequestLinks;
  readonly apps: AppTable;
  readonly tokens: SessionTokens;
  readonly runner: AppRunner;
  readonly telemetry: RequestTelemetry;
  readonly headerBytesMax: number;
  readonly bodyBytesMax: number;
  readonly assets: AssetServices;
}

const RANK: Readonly<Record<Tier, number>> = { edge: 0, core: 1, root: 2 };

/** Routes requests of apps. */
export class AppGateway {
  readonly #services: AppGatewayServices;

  constructor(services: AppGatewayServices) {
    this.#services = services;
  }

  /** Apps that have hosts of their own, by host. */
  get hosts(): ReadonlyMap<string, string> {
    return this.#services.apps.hosts;
  }

  /**
   * Reads the head of a request for an app: everything that is known of the request before it runs.
   *
   * @throws Problem `limit_headers`.
   */
  head(arrival: Arrival, address: Extract<ReturnType<typeof addressOf>, { kind: "app" }>): RequestHead {
    return readHead(arrival, address, this.#services.headerBytesMax);
  }

  /**
   * Answers with the token of a request's session, for a client that has none yet, or several: they are merged.
   *
   * @throws Problem for a malformed token in the header, and for any other refusal of the platform.
   */
  async session(request: Request): Promise<Response> {
    const { tokens, runner, headerBytesMax } = this.#services;
    const { origin } = new URL(request.url);
    const head = readHead(request, { kind: "app", app: "", prefix: "", origin, target: "/" }, headerBytesMax);
    const presented = head.tokenFrom === "cookie" ? openedOr(tokens, head.tokens) : tokens.open(head.tokens);
    const { text } = await runner.session(presented);
    const headers = new Headers({ [SESSION_HEADER]: text, "cache-control": "no-store" });
    if (wantsCookie(head, text)) headers.set("set-cookie", sessionCookie(text, head.secure));
    return new Response(null, { status: 204, headers });
  }

  /**
   * Handles a request for an app.
   *
   * @param forwarded head with which the request came over a link; null from a client.
   * @throws Problem for what the platform refuses.
   */
  async handle(
    arrival: Arrival,
    head: RequestHead,
    app: string,
    forwarded: ForwardedRequest | null,
  ): Promise<Outcome> {
    const { tokens, runner, bodyBytesMax } = this.#services;
    let presented: readonly RequestToken[] = tokens.open(head.tokens);
    const live = this.#live(app);
    // A page and its parts come without a session, hence all from one version: the current one.
    const isFresh = live.rollout !== undefined && presented.length === 0 && head.version === null;
    const early = isFresh ? await this.#asset(live.current, head, arrival) : null;
    if (early !== null) return respond(early);
    // A session that the request makes is made here, so that its id decides, wherever the request then runs.
    if (live.rollout !== undefined && presented.length === 0) {
      presented = [await runner.session([])];
      arrival.isNew = true;
    }
    const chosen = this.#version(live, head.version, presented);
    const version = arrival.version = chosen instanceof Promise ? await chosen : chosen;
    describeApp(arrival.span, version);
    if (version.files !== undefined) {
      const asset = await this.#asset(version, head, arrival);
      if (asset !== null) return respond(asset);
      if (version.manifest.handlers?.includes("fetch") === false) {
        throw new Problem("not_found", `${app} has no file of this path, and no fetch handler`);
      }
    }
    if (head.contentLength > bodyBytesMax) {
      throw new Problem(
        "limit_body",
        `a body of ${head.contentLength} bytes; at most ${bodyBytesMax} are accepted`,
      );
    }
    const tier = version.tierOf(pathOf(head.target));
    if (tier === null) {
      throw new Problem(
        "limit_headers",
        `a path of ${
          pathOf(head.target).length
        } characters; at most ${MATCHED_CHARS_MAX} are matched with routes`,
      );
    }
    arrival.tier = tier;
    if (this.#runsAbove(tier)) {
      const outcome = await this.#forward(arrival, head, presented, forwarded);
      if (forwarded === null) keepCookie(outcome, head);
      return outcome;
    }
    return await runner.run(arrival, head, version, presented, forwarded === null);
  }

  async #asset(version: LiveVersion, head: RequestHead, arrival: Arrival): Promise<Response | null> {
    if (version.files === undefined) return null;
    const answer = await answerAsset(this.#services.assets, version, head, arrival);
    if (answer !== null) {
      arrival.version = version;
      describeApp(arrival.span, version);
    }
    return answer;
  }

  #live(app: string): LiveApp {
    const live = this.#services.apps.get(app);
    if (live !== undefined) return live;
    const shown = APP_NAME.test(app)
      ? `no app is called ${app}`
      : `${JSON.stringify(app.slice(0, 60))} is no app's name`;
    throw new Problem("app_unknown", `${shown} here`);
  }

  /** Returns the version that is named, else the one that the session gets. */
  #version(
    live: LiveApp,
    preview: string | null,
    presented: readonly RequestToken[],
  ): LiveVersion | Promise<LiveVersion> {
    if (preview !== null) return this.#preview(live, preview);
    const { current, rollout } = live;
    const [token] = presented;
    if (rollout === undefined || token === undefined) return current;
    const { next, weight } = rollout;
    return takesPart(token.state.session, next.version, weight) ? next : current;
  }

  async #preview(live: LiveApp, asked: string): Promise<LiveVersion> {
    const version = await this.#services.apps.version(live.name, asked);
    if (version !== undefined) return version;
    throw new Problem("version_unknown", `${live.name} has no version ${JSON.stringify(asked.slice(0, 64))}`);
  }

  /** Reports whether a route of the wanted tier runs at a site above this one (AG2). */
  #runsAbove(wanted: Tier): boolean {
    const { tier, parent } = this.#services;
    return parent !== null && RANK[wanted] > RANK[tier];
  }

  async #forward(
    arrival: Arrival,
    head: RequestHead,
    presented: readonly RequestToken[],
    forwarded: ForwardedRequest | null,
  ): Promise<Outcome> {
    const { links, parent, telemetry } = this.#services;
    if (parent === null) throw new Error("the root forwards nothing upwards"); // AG2
    const base = forwarded ?? { method: head.method, url: arrival.url, headers: [] };
    const passed = head.headers.filter(([name]) => name !== "x-forwarded-prefix");
    if (presented.length > 0) passed.push([SESSION_HEADER, presented.map((token) => token.text).join(", ")]);
    if (head.version !== null) passed.push(["sojourn-version", head.version]);
    if (head.asksWhere || this.#services.assets.answerHeaders === "always") passed.push([TIMING_HEADER, "1"]);
    if (head.offers.length > 0) offerAgain(passed, head.offers);
    const { step, headers: told } = telemetry.forward(arrival.span, parent, passed);
    const bytes = encodeRequestHead({
      ...(forwarded === null ? base : nextHop(forwarded)),
      headers: told,
      upgrade: head.upgrade,
      ...(arrival.isNew === undefined ? {} : { isNew: arrival.isNew }),
      ...(arrival.remote === undefined ? {} : { remote: arrival.remote }),
    });
    const ways = head.upgrade
      ? new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>()
      : null;
    const body = ways?.readable ?? arrival.content.body;
    const sent = this.#request(links, parent, bytes, body, arrival.signal);
    const answer = await (step === undefined ? sent : step.around(sent, problemCode));
    const { status, headers } = decodeAnswerHead(answer.head);
    if (ways === null || status !== 101 || answer.body === null) {
      ways?.writable.close().catch(() => {}); // no socket was opened: nothing follows on this way
      arrival.isStreamed = answer.body !== null;
      return respond(answerResponse(answer));
    }
    const protocol = headers.find(([name]) => name === "sec-websocket-protocol")?.[1] ?? "";
    return { kind: "socket", socket: new LinkSocket(answer.body, ways), protocol, headers };
  }

  async #request(
    links: RequestLinks,
    parent: string,
    head: Uint8Array,
    body: ReadableStream<Uint8Array> | null,
    gone: GoneSignal | undefined,
  ): ReturnType<RequestLinks["request"]> {
    const controller = new AbortController();
    const leave = () => controller.abort();
    if (gone?.aborted) leave();
    gone?.addEventListener("abort", leave, { once: true });
    try {
      return await links.request(parent, FORWARD_KIND.app, head, { body, signal: controller.signal });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Problem(
        "store_unreachable",
        `this path runs above this site, and ${parent} cannot be reached: ${why}`,
      );
    }
  }
}

/**
 * Returns the tokens that a cookie holds; none where one is not valid: nobody chose the cookie, so a bad one is only a
 * session less.
 */
function openedOr(tokens: SessionTokens, texts: readonly string[]): RequestToken[] {
  try {
    return tokens.open(texts);
  } catch (error) {
    if (error instanceof Problem) return [];
    throw error;
  }
}

/** Puts the offered subprotocols back into the headers: the next site is to see all of them, too. */
function offerAgain(headers: [string, string][], offers: readonly string[]): void {
  const name = "sec-websocket-protocol";
  const at = headers.findIndex(([each]) => each === name);
  const [own] = at < 0 ? [] : headers.splice(at, 1);
  headers.push([name, [...offers, ...own === undefined ? [] : [own[1]]].join(", ")]);
}

/**
 * Sets the session's cookie on an answer that came from another site: the browser belongs to the site where its request
 * arrived.
 */
function keepCookie(outcome: Outcome, head: RequestHead): void {
  const headers = outcome.kind === "socket" ? outcome.headers : outcome.response.headers;
  const token = Array.isArray(headers)
    ? headers.find(([name]) => name === SESSION_HEADER)?.[1]
    : headers.get(SESSION_HEADER);
  if (token === undefined || token === null || !wantsCookie(head, token)) return;
  const cookie = sessionCookie(token, head.secure);
  if (Array.isArray(headers)) headers.push(["set-cookie", cookie]);
  else headers.append("set-cookie", cookie);
}
