/**
 * Outcomes of `fetch`. Responses are as Deno's own: `type` "basic", the address they came from, headers that can't be
 * changed, a body that is decoded.
 *
 * R1  A decoded response no longer names its encoding: it can be passed on as it is.
 */
import type { ResponseHead } from "../heads.ts";

/** Statuses whose responses have no body, and whose constructor refuses one. */
const NO_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);
/**
 * Encodings that are decoded here, not at the site: a small body that grows without end grows against the app's own
 * limits.
 */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"],
]);

/** A fetch that failed or was refused: a TypeError with the site's code. */
export class FetchError extends TypeError {
  override readonly name = "TypeError";
  constructor(readonly code: string, message: string) {
    super(message);
  }

  /**
   * Throws the error itself: uncaught, it is the platform's problem also in Hono (functions/vocabulary/errors.ts, E2).
   */
  getResponse(): never {
    throw this;
  }
}

const FETCHED = Symbol("fetched");

interface Facts {
  readonly url: string;
  readonly redirected: boolean;
}

interface Marked {
  [FETCHED]?: Facts;
}

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Makes a response of what the site sent. */
export function fetchedResponse(head: ResponseHead, body: Body | null, facts: Facts): Response {
  const given = NO_BODY.has(head.status) ? null : body;
  const encoding = head.headers.find(([name]) => name === "content-encoding")?.[1];
  const format = given === null ? undefined : FORMATS.get(encoding?.trim().toLowerCase() ?? "");
  const headers = format === undefined
    ? head.headers
    : head.headers.filter(([name]) => name !== "content-encoding" && name !== "content-length");
  const stream = format === undefined
    ? given
    : given?.pipeThrough(new DecompressionStream(format as CompressionFormat)) ?? null;
  const { status, statusText } = head;
  return marked(new Response(stream, { status, statusText, headers }), facts);
}

function marked(response: Response, facts: Facts): Response {
  (response as Response & Marked)[FETCHED] = facts;
  const { headers } = response;
  for (const name of ["append", "delete", "set"]) {
    Object.defineProperty(headers, name, { value: refuseChange });
  }
  return response;
}

const refuseChange = (): never => {
  throw new TypeError("Cannot change headers: headers are immutable");
};

/** Puts getters in place of the built-in ones; responses that were not fetched keep theirs. */
export function installFetchedResponse(): void {
  const { prototype } = globalThis.Response;
  const getter = (name: keyof Response, of: (facts: Facts) => unknown) => {
    const builtIn = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(prototype, name, {
      configurable: true,
      enumerable: true,
      get(this: Response & Marked): unknown {
        const facts = this[FETCHED];
        return facts === undefined ? builtIn?.get?.call(this) : of(facts);
      },
    });
  };
  getter("url", (facts) => facts.url);
  getter("redirected", (facts) => facts.redirected);
  getter("type", () => "basic");
  const { clone } = prototype;
  Object.defineProperty(prototype, "clone", {
    configurable: true,
    enumerable: true,
    writable: true,
    value: function (this: Response & Marked): Response {
      const facts = this[FETCHED];
      const copy = clone.call(this);
      return facts === undefined ? copy : marked(copy, facts);
    },
  });
}
