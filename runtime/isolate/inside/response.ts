/**
 * The isolate's `Response` constructor: the built-in one, which also accepts the options of an upgrade (status 101 with
 * `webSocket`) and remembers a body that needs no stream, so that most answers leave in one frame.
 */
import { INLINE_BYTES_MAX } from "../heads.ts";

const BODY_SOURCE = Symbol("body source");
const WEB_SOCKET = Symbol("webSocket");
const ATTACH = Symbol("attach");

interface Marked {
  [BODY_SOURCE]?: string | Uint8Array | null | undefined;
  [WEB_SOCKET]?: object;
  [ATTACH]?: Attachment;
}

/** Returns the body a response was made with, while nothing has read it; undefined where it has to be streamed. */
export function plainBody(response: Response): string | Uint8Array | null | undefined {
  if (response.bodyUsed) return undefined;
  return (response as Response & Marked)[BODY_SOURCE];
}

/** Returns a plain body that travels with its head; undefined for one that is too large, or no plain one. */
export function inlineBody(
  plain: string | Uint8Array | null | undefined,
): string | Uint8Array | null | undefined {
  if (plain === null || plain === undefined) return plain;
  if (typeof plain !== "string") return plain.length <= INLINE_BYTES_MAX ? plain : undefined;
  // A UTF-16 code unit takes one to three bytes of UTF-8.
  if (plain.length * 3 <= INLINE_BYTES_MAX) return plain;
  if (plain.length > INLINE_BYTES_MAX) return undefined;
  const bytes = utf8.encode(plain);
  return bytes.length <= INLINE_BYTES_MAX ? bytes : undefined;
}

const utf8 = new TextEncoder();

/** Returns the socket of an upgrade response. */
export const webSocketOf = (response: Response): object | undefined =>
  (response as Response & Marked)[WEB_SOCKET];

/** A stateful session that a WebSocket is handed over to. */
export interface Attachment {
  readonly class: string;
  readonly id: string;
}

/**
 * Makes the answer of `fetch(upgradeRequest)` of a stateful session: returned by a handler, it hands the socket over.
 */
export function attachingResponse(target: Attachment): Response {
  const response = new Response(null) as Response & Marked;
  Object.defineProperty(response, "status", { value: 101 });
  response[ATTACH] = target;
  return response;
}

/** Returns the session that a response hands its request's WebSocket to. */
export const attachmentOf = (response: Response): Attachment | undefined =>
  (response as Response & Marked)[ATTACH];

function sourceOf(body: unknown): string | Uint8Array | null | undefined {
  if (body === null || body === undefined) return null;
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  return undefined;
}

/**
 * Stands for `Response.json`, by way of the constructor: its body needs no stream either. (A streamed body leaves its
 * token `open`, so that the session's next site has to ask.)
 */
function json(data: unknown, init: ResponseInit = {}): Response {
  const text = JSON.stringify(data);
  if (text === undefined) throw new TypeError("Value is not JSON serializable");
  const headers = new Headers(init.headers);
  if (!headers.has("content-type")) headers.set("content-type", "application/json");
  return new Response(text, { ...init, headers });
}

/** Puts the constructor in place of the built-in one; `instanceof` and other static methods stay as they are. */
export function installResponse(): void {
  const BuiltIn = globalThis.Response;
  const construct = (target: typeof Response, args: unknown[], newTarget: unknown): object => {
    const [body, init] = args as [unknown, (ResponseInit & { webSocket?: object | null }) | undefined];
    const socket = init?.webSocket;
    if (socket) {
      const { status: _, webSocket: __, ...rest } = init;
      const response = Reflect.construct(target, [null, rest], newTarget as never) as Response & Marked;
      Object.defineProperty(response, "status", { value: 101 });
      Object.defineProperty(response, "webSocket", { value: socket });
      response[WEB_SOCKET] = socket;
      return response;
    }
    const response = Reflect.construct(target, args, newTarget as never) as Response & Marked;
    response[BODY_SOURCE] = sourceOf(body);
    return response;
  };
  globalThis.Response = new Proxy(BuiltIn, { construct });
  // The built-in one makes a response that this constructor never sees.
  Object.defineProperty(BuiltIn, "json", { value: json, configurable: true, writable: true });
  Object.defineProperty(BuiltIn.prototype, "constructor", {
    value: globalThis.Response,
    configurable: true,
    writable: true,
  });
}
