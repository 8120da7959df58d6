/**
 * A request to the app as it is sent, maybe more than once.
 *
 * Q1  GET, HEAD and OPTIONS may be sent again. Others may where they carry an `Idempotency-Key`: it is the caller's, or
 *     drawn here. None may whose body is a stream: it is there once.
 */

/** Request to the app. */
export interface AppRequest {
  /** Path and query, as the app sees them. */
  readonly path: string;
  readonly method: string;
  readonly headers: Headers;
  /** Options of the request but for these, as the platform's `fetch` takes them. */
  readonly init: RequestInit;
  readonly signal: AbortSignal | null;
  /** True where the request may be sent again (Q1). */
  readonly isRepeatable: boolean;
  /** True where the request can be sent again, if no app has looked at it (Q1). */
  readonly isWhole: boolean;
  /**
   * True where the time that the request takes says something of the way to the site, and not of the request's size.
   */
  readonly isShort: boolean;
}

const KEY = "idempotency-key";
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
/** Methods that a `Request` writes in capitals. */
const KNOWN = /^(?:delete|get|head|options|post|put)$/i;
/** Bytes of a body up to which a request is short: ten packets take no more round trips than one. */
const SHORT_BYTES = 14_000;

/** Makes the request to the app. @param draw makes an `Idempotency-Key`; null: only the caller's own ones are sent. */
export async function appRequest(
  path: string,
  { input, init = {}, draw }: {
    readonly input: RequestInfo | URL;
    readonly init?: RequestInit | undefined;
    readonly draw: (() => string) | null;
  },
): Promise<AppRequest> {
  const given = input instanceof Request ? await fromRequest(new Request(input, init)) : init;
  const method = KNOWN.test(given.method ?? "")
    ? given.method?.toUpperCase() ?? "GET"
    : given.method ?? "GET";
  const headers = new Headers(given.headers);
  const isWhole = !(given.body instanceof ReadableStream);
  const isRead = READS.has(method);
  if (!isRead && isWhole && draw !== null && !headers.has(KEY)) headers.set(KEY, draw());
  return {
    path: path.split("#", 1)[0] ?? "",
    method,
    headers,
    init: given,
    signal: given.signal ?? null,
    isRepeatable: isWhole && (isRead || headers.has(KEY)),
    isWhole,
    isShort: isWhole && sizeOf(given.body) <= SHORT_BYTES,
  };
}

/** Returns a request's parts. Its body is read: a request can be sent once, and this one may be sent again. */
async function fromRequest(request: Request): Promise<RequestInit> {
  const { method, headers, signal, redirect, credentials, cache, referrerPolicy, integrity, keepalive } =
    request;
  const body = request.body === null ? null : await request.bytes();
  return {
    method,
    headers,
    signal,
    redirect,
    credentials,
    cache,
    referrerPolicy,
    integrity,
    keepalive,
    body,
  };
}

function sizeOf(body: RequestInit["body"]): number {
  if (typeof body === "string") return body.length;
  if (body instanceof Blob) return body.size;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return body.byteLength;
  return body === null || body === undefined || body instanceof URLSearchParams ? 0 : Infinity;
}
