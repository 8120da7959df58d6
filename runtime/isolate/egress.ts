/**
 * Outgoing fetches of one isolate, made by the site after it has checked where they go.
 *
 * E1  Only where app and operator both say so (egress_rules.ts), and of those hosts only public addresses; a
 *     private one only where the operator's configuration names exactly that `host:port`.
 * E2  The address that was checked is the one connected to: the name is not looked up again.
 * E3  Redirects are followed here, each step checked like the first. One that keeps a body which the isolate can
 *     send again goes back to it ("replay"): what it asks for then is checked as anything else.
 * E4  Nothing leaves before the output gate of the request has resolved.
 */
import type { AppQueues } from "./app_queues.ts";
import type { AppTurns } from "./app_turns.ts";
import { ASSETS_ORIGIN } from "./assets_origin.ts";
import { BodyReceiver, BodySender, WINDOW_BYTES } from "./bodies.ts";
import type { EgressRules } from "./egress_rules.ts";
import { readEnd, readMessage } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { beginFetch, endFetch } from "./fetch_span.ts";
import { FrameError, ISOLATE_FRAME } from "./frames.ts";
import { BODY, HEAD_BYTES_MAX, headerPairs, readRequestHead, writeResponseHead } from "./heads.ts";
import type { HostExchange } from "./host_exchange.ts";
import {
  FetchRefused,
  type OutgoingRequest,
  type OutgoingResponse,
  sendChecked,
  shownUrl,
} from "./outgoing_http.ts";
import { droppedHeaders, isRedirect, REDIRECTS_MAX, turnsToGet } from "./redirect.ts";
import { wireError, writeError } from "./store_frames.ts";

interface OpenFetch {
  readonly abort: AbortController;
  receiver?: BodyReceiver;
  sender?: BodySender;
}

type AssetFetch = (request: OutgoingRequest) => Promise<OutgoingResponse>;

/** Values of `redirect`: those of a `Request`, and "replay" (E3). */
const REDIRECTS: ReadonlySet<string> = new Set(["follow", "error", "manual", "replay"]);

/** Number of fetches of one isolate at the same time: each takes a socket on the site. */
const OPEN_MAX = 256;

/** The outgoing fetches of one isolate, over node:http(s), to checked addresses. */
export class HostEgress {
  readonly #rules: EgressRules;
  readonly #assets: AssetFetch | undefined;
  readonly #open = new Map<number, OpenFetch>();

  /** @param assets answers requests to {@link ASSETS_ORIGIN}, which do not leave the site */
  constructor(rules: EgressRules, assets?: AssetFetch) {
    this.#rules = rules;
    this.#assets = assets;
  }

  start(
    writer: FrameWriter,
    id: number,
    payload: Payload,
    owner: HostExchange | undefined,
    queues: AppQueues,
  ): void {
    const { fields, body } = readRequestHead(payload, HEAD_BYTES_MAX);
    const [redirect = "", method = "", url = ""] = fields;
    if (!REDIRECTS.has(redirect) || fields.length % 2 === 0 || (body !== BODY.none && body !== BODY.stream)) {
      throw new FrameError("the head of a fetch is none");
    }
    readEnd(payload);
    if (this.#open.has(id)) throw new FrameError("a fetch has the channel of another");
    const open: OpenFetch = { abort: new AbortController() };
    this.#open.set(id, open);
    if (body === BODY.stream) {
      open.receiver = new BodyReceiver(writer, id, {
        granted: false,
        waits: { queues, queue: "outgoing body" },
      });
    }
    const request: OutgoingRequest = {
      method,
      url,
      headers: headerPairs(fields, 3),
      body: open.receiver?.stream ?? null,
      signal: open.abort.signal,
    };
    this.#run(writer, id, open, request, { redirect, owner, turns: queues.turns }).catch((error) => {
      writer.begin(ISOLATE_FRAME.failed, id);
      writeError(writer, wireError(error, "fetch_failed"));
      writer.end();
    }).finally(() => {
      this.#open.delete(id);
      // What is still to come of its body has no channel any more.
      if (open.receiver?.isOpen) open.receiver.fail(new Error("the fetch is over"));
    });
  }

  receive(type: number, id: number, payload: Payload): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    if (type === ISOLATE_FRAME.fetchAbort) open.abort.abort();
    else if (type === ISOLATE_FRAME.data) {
      if (open.receiver?.data(payload.rest()) === false) throw new FrameError("a body ignored its window");
    } else if (type === ISOLATE_FRAME.end) open.receiver?.end();
    else if (type === ISOLATE_FRAME.abort) open.receiver?.fail(new Error(readMessage(payload)));
    else if (type === ISOLATE_FRAME.credit) open.sender?.credit(payload.u32());
    else if (type === ISOLATE_FRAME.stop) open.sender?.stop(readMessage(payload));
  }

  close(): void {
    for (const open of this.#open.values()) {
      open.abort.abort();
      open.sender?.stop("the isolate ended");
      open.receiver?.fail(new Error("the isolate ended"));
    }
    this.#open.clear();
  }

  async #run(
    writer: FrameWriter,
    id: number,
    open: OpenFetch,
    request: OutgoingRequest,
    { redirect, owner, turns }: {
      readonly redirect: string;
      readonly owner: HostExchange | undefined;
      readonly turns: AppTurns;
    },
  ): Promise<void> {
    if (owner === undefined) {
      throw new FetchRefused(
        "request_ended",
        `fetch(${shown(request.url)}): its request has ended; use ctx.waitUntil`,
      );
    }
    if (this.#open.size > OPEN_MAX) {
      throw new FetchRefused(
        "overloaded",
        `fetch(${shown(request.url)}): ${OPEN_MAX} fetches are open already`,
      );
    }
    const own = request.url.startsWith(ASSETS_ORIGIN + "/") ? this.#assets?.(request) : undefined;
    const { response, url } = own === undefined
      ? await this.#outwards(owner, request, redirect)
      : { response: await own, url: request.url };
    writer.begin(ISOLATE_FRAME.fetchHead, id).text(url);
    writeResponseHead(
      writer,
      response.status,
      response.statusText,
      response.headers,
      response.body ? BODY.stream : BODY.none,
    );
    writer.end();
    if (response.body === null) return;
    open.sender = new BodySender(writer, id, { credit: WINDOW_BYTES, turns });
    await open.sender.send(response.body);
  }

  /** Makes a fetch outside the site, after the output gate (E4). */
  async #outwards(
    owner: HostExchange,
    request: OutgoingRequest,
    redirect: string,
  ): Promise<{ response: OutgoingResponse; url: string }> {
    await owner.pending.call.gate();
    owner.pending.hasEffects = true;
    const { step, request: traced } = beginFetch(owner.pending.call, request);
    const following = fetchOutside(traced, redirect, this.#rules);
    return await (step === undefined ? following : endFetch(step, following));
  }
}

/**
 * Makes an outside request, and those that it is redirected to, each checked like the first (E1, E3).
 *
 * @throws FetchRefused, TypeError
 */
export async function fetchOutside(
  first: OutgoingRequest,
  redirect: string,
  rules: EgressRules,
): Promise<{ response: OutgoingResponse; url: string }> {
  let request = first;
  for (let step = 0; step <= REDIRECTS_MAX; step++) {
    const response = await sendChecked(request, rules);
    const location = response.headers.find(([name]) => name.toLowerCase() === "location")?.[1];
    if (!isRedirect(response.status) || location === undefined || redirect === "manual") {
      return { response, url: request.url };
    }
    const keepsBody = request.body !== null && !turnsToGet(response.status, request.method);
    if (redirect === "replay" && keepsBody) return { response, url: request.url };
    await response.body?.cancel();
    if (redirect === "error") {
      throw new TypeError(
        `fetch(${shown(request.url)}): it redirects, to ${shown(new URL(location, request.url).href)}`,
      );
    }
    request = redirected(request, response.status, location);
  }
  throw new TypeError(`fetch(${shown(first.url)}): more than ${REDIRECTS_MAX} redirects`);
}

const shown = (url: string): string => URL.canParse(url) ? shownUrl(new URL(url)) : "?";

/** Returns the next request of a redirect, as the Fetch standard has it. */
function redirected(request: OutgoingRequest, status: number, location: string): OutgoingRequest {
  const url = new URL(location, request.url);
  const toGet = turnsToGet(status, request.method);
  if (!toGet && request.body !== null) {
    throw new TypeError(
      `fetch(${shown(request.url)}): a streamed body can't follow a redirect to ${shown(url.href)}`,
    );
  }
  const drop = droppedHeaders(new URL(request.url), url, toGet);
  return {
    method: toGet ? "GET" : request.method,
    url: url.href,
    headers: request.headers.filter(([name]) => !drop(name)),
    body: null,
    signal: request.signal,
  };
}
