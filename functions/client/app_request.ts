/**
 * A request to the app as it is sent, maybe more than once.
 *
 * Q1  GET, HEAD and OPTIONS may be sent again. Others may where they carry an `Idempotency-Key`: it is the caller's, or
 *     drawn here. None may whose body is a stream: it is there once.
 */

/** One request. */
export interface AppRequest {
  /** As the app sees it. */
  readonly path: string;
  readonly method: string;
  readonly headers: Headers;
  /** The rest, as the platform's `fetch` takes it. */
  readonly init: RequestInit;
  readonly signal: AbortSignal | null;
  /** Q1 */
  readonly isRepeatable: boolean;
  /** It can be sent again, where nobody has looked at it (Q1). */
  readonly isWhole: boolean;
  /** How long its way is says something of the site's, and not of what is sent. */
  readonly isShort: boolean;
}

const KEY = "idempotency-key";
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
/** Methods that a `Request` writes in capitals. */
const KNOWN = /^(?:delete|get|head|options|post|put)$/i;
/** A body of ten packets takes no more round trips than one of one. */
const SHORT_BYTES = 14_000;

/** @param draw makes a key; null: only the caller's own ones are sent. */
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

/** A request's parts. Its body is read: a request can be sent once, and this one may be sent again. */
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
