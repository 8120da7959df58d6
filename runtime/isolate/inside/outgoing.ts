/**
 * `fetch` inside the isolate: the site makes the call, after checking where it goes.
 *
 * O1  A fetch belongs to the request that started it; outside of one it fails. Only `data:` and `blob:`, which
 *     reach nothing, are Deno's own.
 * O2  A failure is a TypeError, as in Deno, with the site's code.
 * O3  A redirect that keeps its body comes back here, since the site holds no bodies: it is followed with the
 *     body once more where that is none that streams.
 */
import { ASSETS_ORIGIN } from "../assets_origin.ts";
import { BodyReceiver, BodySender } from "../bodies.ts";
import type { Payload } from "../frame_reader.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { FETCH_ID_BASE, ISOLATE_FRAME } from "../frames.ts";
import { assertHead, BODY, readResponseHead, writeRequestHead } from "../heads.ts";
import { droppedHeaders, isRedirect, REDIRECTS_MAX, turnsToGet } from "../redirect.ts";
import { readError } from "../store_frames.ts";
import { fetchedResponse, FetchError } from "./fetched_response.ts";
import { SiteError } from "./store.ts";

interface OpenFetch {
  readonly url: string;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: unknown) => void;
  /** True where redirects led to this fetch. */
  readonly isFollowed: boolean;
  sender?: BodySender;
  receiver?: BodyReceiver;
}

/** The outgoing fetches of this isolate. */
export class OutgoingFetches {
  readonly #writer: FrameWriter;
  readonly #owner: () => { readonly id: number } | undefined;
  readonly #trace: () => string | undefined;
  readonly #open = new Map<number, OpenFetch>();
  readonly #local = globalThis.fetch;
  #next = FETCH_ID_BASE;

  /** @param trace returns the `traceparent` of the app's span that is active, if any. */
  constructor(
    writer: FrameWriter,
    owner: () => { readonly id: number } | undefined,
    trace: () => string | undefined,
  ) {
    this.#writer = writer;
    this.#owner = owner;
    this.#trace = trace;
  }

  /** The global `fetch`. */
  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const { protocol } = new URL(request.url);
    if (protocol === "data:" || protocol === "blob:") return await this.#local.call(globalThis, request);
    const owner = this.#owner();
    if (owner === undefined) {
      throw new SiteError(
        "no_request",
        `fetch(${request.url}) works while a request runs, not while a module loads`,
      );
    }
    const trace = this.#trace();
    if (trace !== undefined && !request.headers.has("traceparent")) request.headers.set("traceparent", trace);
    const body = init?.body ?? null;
    const again = request.redirect === "follow" && body !== null && !(body instanceof ReadableStream)
      ? body
      : undefined;
    return await this.#follow(owner.id, request, again);
  };

  /** Serves `env.ASSETS.fetch`: a file of the app's own version, or a 404 where it has no such file. */
  readonly assets = (request: Request): Promise<Response> => {
    const { method, headers, signal, url } = request;
    const { pathname, search } = new URL(url);
    return this.fetch(
      new Request(ASSETS_ORIGIN + pathname + search, { method, headers, signal, redirect: "manual" }),
    );
  };

  async #follow(owner: number, first: Request, again: BodyInit | undefined): Promise<Response> {
    let request = first;
    for (let step = 0; step <= REDIRECTS_MAX; step++) {
      if (request.signal.aborted) throw request.signal.reason;
      const response = await this.#start(owner, request, {
        replays: again !== undefined,
        isFollowed: step > 0,
      });
      const location = response.headers.get("location");
      if (
        again === undefined || location === null || !isRedirect(response.status) ||
        turnsToGet(response.status, request.method)
      ) return response;
      await response.body?.cancel();
      request = redirected(request, response.url, location, again);
    }
    const { origin, pathname } = new URL(first.url);
    throw new FetchError("fetch_failed", `fetch(${origin}${pathname}): more than ${REDIRECTS_MAX} redirects`);
  }

  #start(owner: number, request: Request, how: { replays: boolean; isFollowed: boolean }): Promise<Response> {
    const id = this.#next++;
    if (this.#next > 0xffffffff) this.#next = FETCH_ID_BASE;
    const body = request.body;
    return new Promise<Response>((resolve, reject) => {
      const open: OpenFetch = { url: request.url, resolve, reject, isFollowed: how.isFollowed };
      this.#writer.begin(ISOLATE_FRAME.fetchStart, id).u32(owner);
      const redirect = how.replays ? "replay" : request.redirect;
      writeRequestHead(this.#writer, [redirect], request, body ? BODY.stream : BODY.none);
      assertHead(this.#writer);
      this.#open.set(id, open);
      this.#writer.end();
      if (body) {
        open.sender = new BodySender(this.#writer, id, { credit: 0 });
        open.sender.send(body);
      }
      request.signal.addEventListener("abort", () => {
        if (!this.#open.delete(id)) return;
        this.#writer.signal(ISOLATE_FRAME.fetchAbort, id);
        open.sender?.stop();
        open.receiver?.fail(request.signal.reason);
        reject(request.signal.reason);
      });
    });
  }

  /** Handles a frame for a fetch; returns false when it is for something else. */
  receive(type: number, id: number, payload: Payload): boolean {
    if (id < FETCH_ID_BASE) return false;
    const open = this.#open.get(id);
    if (open === undefined) return true;
    if (type === ISOLATE_FRAME.fetchHead) this.#head(id, open, payload);
    else if (type === ISOLATE_FRAME.failed) {
      this.#open.delete(id);
      const error = readError(payload);
      open.sender?.stop();
      open.reject(new FetchError(error.code, error.message));
    } else if (type === ISOLATE_FRAME.data) open.receiver?.data(payload.rest());
    else if (type === ISOLATE_FRAME.end) open.receiver?.end();
    else if (type === ISOLATE_FRAME.abort) open.receiver?.fail(new TypeError(payload.text()));
    else if (type === ISOLATE_FRAME.credit) open.sender?.credit(payload.u32());
    else if (type === ISOLATE_FRAME.stop) open.sender?.stop(payload.text());
    return true;
  }

  #head(id: number, open: OpenFetch, payload: Payload): void {
    const finalUrl = payload.text();
    const { head, body } = readResponseHead(payload);
    let stream: ReadableStream<Uint8Array<ArrayBuffer>> | null = null;
    if (body === BODY.stream) {
      open.receiver = new BodyReceiver(this.#writer, id, {
        granted: true,
        closed: () => this.#open.delete(id),
      });
      stream = open.receiver.stream;
    } else this.#open.delete(id);
    const url = withoutFragment(finalUrl);
    const redirected = open.isFollowed || url !== withoutFragment(open.url);
    open.resolve(fetchedResponse(head, stream, { url, redirected }));
  }
}

/** Returns the request after a redirect that keeps its method and body. */
function redirected(from: Request, fromUrl: string, location: string, body: BodyInit): Request {
  const url = new URL(location, fromUrl);
  const dropped = droppedHeaders(new URL(fromUrl), url, false);
  const headers = new Headers([...from.headers].filter(([name]) => !dropped(name)));
  // A form is written anew, with a boundary of its own.
  if (body instanceof FormData) headers.delete("content-type");
  return new Request(url, { method: from.method, headers, body, signal: from.signal });
}

const withoutFragment = (url: string): string => url.split("#", 1)[0] ?? "";
