/** What comes of a call. */
import type { ResponseHead } from "./heads.ts";
import type { HostSocket } from "./host_socket.ts";

/** What comes of a call: a response, an upgrade, or the reason why there is neither. */
export type IsolateAnswer =
  | ResponseAnswer
  | { readonly kind: "upgrade"; readonly socket: HostSocket; readonly settled: Promise<void> }
  | { readonly kind: "error"; readonly code: string; readonly message: string; readonly stack?: string };

/** The body of a response: bytes when it is complete, a stream otherwise. */
export type AnswerBody = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;

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
    return new Response(this.body, this);
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
