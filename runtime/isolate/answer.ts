/** The outcome of one call of an app, as its caller gets it. */
import type { Payload } from "./frame_reader.ts";
import type { SessionTarget } from "../../functions/calls/stub.ts";
import type { ResponseHead } from "./heads.ts";
import type { HostSocket } from "./host_socket.ts";

/** The outcome of a call: a response, an upgrade, a socket for a stateful session, or the reason why there is none. */
export type IsolateAnswer =
  | ResponseAnswer
  | { readonly kind: "upgrade"; readonly socket: HostSocket; readonly settled: Promise<void> }
  | { readonly kind: "attach"; readonly target: SessionTarget }
  | {
    readonly kind: "error";
    readonly code: string;
    readonly message: string;
    readonly stack?: string;
    /** Set where the call was never given to an isolate. */
    readonly neverBegan?: true;
  };

/** The body of a response: text or bytes when it is complete, a stream otherwise. */
export type AnswerBody = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;

/** The exchange that an answer came from, as far as the answer reads it. */
interface Answered {
  readonly settled: Promise<void>;
  readonly hasEnded: boolean;
}

/** Statuses whose Response refuses a body. */
const NO_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** A response. Its parts are plain, so that a gateway can add to them before a Response is made of them. */
export class ResponseAnswer {
  readonly kind = "response";
  readonly status: number;
  readonly statusText: string;
  /** Names in lower case; `set-cookie` once a cookie. */
  readonly headers: [string, string][];
  readonly body: AnswerBody;
  readonly #exchange: Answered;

  constructor(head: ResponseHead, body: AnswerBody, exchange: Answered) {
    this.status = head.status;
    this.statusText = head.statusText;
    this.headers = head.headers;
    this.#exchange = exchange;
    const refused = body !== null && NO_BODY.has(head.status);
    if (refused && body instanceof ReadableStream) body.cancel().catch(() => {});
    this.body = refused ? null : body;
  }

  /** Makes a Response as the standard has it; made anew with each use, so use it once. */
  get response(): Response {
    const { status, statusText } = this;
    const headers = recordOf(this.headers) ?? this.headers;
    return new Response(this.body, statusText === "" ? { status, headers } : { status, statusText, headers });
  }

  /** Resolves when the body and `waitUntil` work are over: the session is not used after it. */
  get settled(): Promise<void> {
    return this.#exchange.settled;
  }

  /** Reports whether `settled` is still to come: a stream, or `waitUntil` work. */
  get open(): boolean {
    return !this.#exchange.hasEnded;
  }
}

/**
 * Returns headers as an object, which a Response takes in half the time of a list; null where an object would not hold
 * them all (a name that comes twice).
 */
function recordOf(headers: readonly (readonly [string, string])[]): Record<string, string> | null {
  const out: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (name in out) return null;
    out[name] = value;
  }
  return out;
}

/** Content types whose bodies are sent as text; a body of another type may be text too, and leaves as bytes. */
const TEXT_TYPE = /^(?:text\/|application\/(?:json|javascript|xml)\b)/;
/** Bytes above which making a string of them, and bytes of it again, costs more than handing over the bytes. */
const TEXT_BYTES_MAX = 16 * 1024;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Returns a body that came with its head, as text where that gives the same bytes: `Deno.serve` sends a string for half
 * of what bytes cost it.
 */
export function wholeBody(head: ResponseHead, payload: Payload): string | Uint8Array<ArrayBuffer> {
  if (payload.left <= TEXT_BYTES_MAX) {
    // A string body without a type would be given one.
    const type = head.headers.find(([name]) => name === "content-type")?.[1];
    if (type !== undefined && TEXT_TYPE.test(type)) {
      try {
        return utf8.decode(payload.view());
      } catch { /* its type is not what it says: bytes it is */ }
    }
  }
  return payload.restForRequest();
}
