/** What comes of a call. */
import type { Payload } from "./frame_reader.ts";
import type { SessionTarget } from "../../functions/calls/stub.ts";
import type { ResponseHead } from "./heads.ts";
import type { HostSocket } from "./host_socket.ts";

/** What comes of a call: a response, an upgrade, a socket for a stateful session, or the reason why there is none. */
export type IsolateAnswer =
  | ResponseAnswer
  | { readonly kind: "upgrade"; readonly socket: HostSocket; readonly settled: Promise<void> }
  | { readonly kind: "attach"; readonly target: SessionTarget }
  | {
    readonly kind: "error";
    readonly code: string;
    readonly message: string;
    readonly stack?: string;
    /** No isolate was given it. */
    readonly neverBegan?: true;
  };

/** The body of a response: text or bytes when it is complete, a stream otherwise. */
export type AnswerBody = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;

/** What an answer asks of its exchange. */
interface Answered {
  readonly settled: Promise<void>;
  readonly hasEnded: boolean;
  readonly cpuMs: number;
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

  /** The response as the standard has it; made anew with each use, so use it once. */
  get response(): Response {
    const { status, statusText } = this;
    const headers = recordOf(this.headers) ?? this.headers;
    return new Response(this.body, statusText === "" ? { status, headers } : { status, statusText, headers });
  }

  /** Resolves when body and `waitUntil` work are over: the session is not used after it. */
  get settled(): Promise<void> {
    return this.#exchange.settled;
  }

  /** Whether `settled` is still to come: a stream, or `waitUntil` work. */
  get open(): boolean {
    return !this.#exchange.hasEnded;
  }

  /** CPU time charged to the request, where it could be told apart. */
  get cpuMs(): number {
    return this.#exchange.cpuMs;
  }
}

/**
 * Headers as an object, which a Response takes in half the time of a list; null where it would not hold them all
 * (a name that comes twice).
 */
function recordOf(headers: readonly (readonly [string, string])[]): Record<string, string> | null {
  const out: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (name in out) return null;
    out[name] = value;
  }
  return out;
}

/** Types whose bodies are text; another one may be too, and leaves as bytes. */
const TEXT_TYPE = /^(?:text\/|application\/(?:json|javascript|xml)\b)/;
/** Above this, making a string of bytes and bytes of it again costs more than handing over the bytes. */
const TEXT_BYTES_MAX = 16 * 1024;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A body that came with its head, as text where that gives the same bytes: `Deno.serve` sends a string for half of
 * what bytes cost it.
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
