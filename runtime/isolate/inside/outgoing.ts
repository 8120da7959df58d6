/**
 * `fetch` inside the isolate: the site makes the call, after checking where it goes.
 *
 * O1  A fetch belongs to the request that started it; outside of one it fails.
 */
import { BodyReceiver, BodySender } from "../bodies.ts";
import type { Payload } from "../frame_reader.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { FETCH_ID_BASE, FRAME } from "../frames.ts";
import { BODY, readResponseHead, writeRequestHead } from "../heads.ts";
import { readError } from "../store_frames.ts";
import { SiteError } from "./store.ts";

/** Statuses whose responses have no body, and whose constructor refuses one. */
const NO_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

interface OpenFetch {
  readonly url: string;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: unknown) => void;
  sender?: BodySender;
  receiver?: BodyReceiver;
}

/** The outgoing fetches of this isolate. */
export class OutgoingFetches {
  readonly #writer: FrameWriter;
  readonly #owner: () => { readonly id: number } | undefined;
  readonly #open = new Map<number, OpenFetch>();
  #next = FETCH_ID_BASE;

  constructor(writer: FrameWriter, owner: () => { readonly id: number } | undefined) {
    this.#writer = writer;
    this.#owner = owner;
  }

  /** The global `fetch`. */
  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const owner = this.#owner();
    const request = new Request(input, init);
    if (owner === undefined) {
      throw new SiteError(
        "no_request",
        `fetch(${request.url}) works while a request runs, not while a module loads`,
      );
    }
    if (request.signal.aborted) throw request.signal.reason;
    const protocol = new URL(request.url).protocol;
    if (protocol === "data:" || protocol === "blob:") {
      throw new TypeError(`fetch takes http: and https: addresses, not ${protocol}`);
    }
    return await this.#start(owner.id, request);
  };

  #start(owner: number, request: Request): Promise<Response> {
    const id = this.#next++;
    if (this.#next > 0xffffffff) this.#next = FETCH_ID_BASE;
    const body = request.body;
    return new Promise<Response>((resolve, reject) => {
      const open: OpenFetch = { url: request.url, resolve, reject };
      this.#open.set(id, open);
      this.#writer.begin(FRAME.fetchStart, id).u32(owner);
      writeRequestHead(this.#writer, [request.redirect], request, body ? BODY.stream : BODY.none);
      this.#writer.end();
      if (body) {
        open.sender = new BodySender(this.#writer, id, { credit: 0 });
        open.sender.send(body);
      }
      request.signal.addEventListener("abort", () => {
        if (!this.#open.delete(id)) return;
        this.#writer.signal(FRAME.fetchAbort, id);
        open.sender?.stop();
        open.receiver?.fail(request.signal.reason);
        reject(request.signal.reason);
      });
    });
  }

  /** A frame for a fetch; false when it is for something else. */
  receive(type: number, id: number, payload: Payload): boolean {
    if (id < FETCH_ID_BASE) return false;
    const open = this.#open.get(id);
    if (open === undefined) return true;
    if (type === FRAME.fetchHead) this.#head(id, open, payload);
    else if (type === FRAME.failed) {
      this.#open.delete(id);
      const error = readError(payload);
      open.sender?.stop();
      open.reject(new SiteError(error.code, error.message, error.detail));
    } else if (type === FRAME.data) open.receiver?.data(payload.rest());
    else if (type === FRAME.end) open.receiver?.end();
    else if (type === FRAME.abort) open.receiver?.fail(new TypeError(payload.text()));
    else if (type === FRAME.credit) open.sender?.credit(payload.u32());
    else if (type === FRAME.stop) open.sender?.stop(payload.text());
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
    const response = new Response(NO_BODY.has(head.status) ? null : stream, {
      status: head.status,
      statusText: head.statusText,
      headers: head.headers,
    });
    Object.defineProperty(response, "url", { value: finalUrl });
    Object.defineProperty(response, "redirected", { value: finalUrl !== open.url });
    open.resolve(response);
  }
}
