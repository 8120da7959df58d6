/**
 * Stubs: what `env.sessions.NAME.get(id)` gives a function. They turn method calls and requests into calls, and what
 * comes back into values, responses and errors.
 *
 * Runs in the trusted part of an isolate: an app's own bundle holds the types only.
 *
 * S1  Nothing is sent for a call whose arguments can't be encoded, or whose body is too long.
 * S2  A stub is awaited, printed and serialised without calling anything.
 * S3  A request for a WebSocket is no call: it is answered with a response that hands the socket over, or refused.
 */
import { KvTypeError } from "../vocabulary/errors.ts";
import { decodeValue, encodeValue } from "../values/value.ts";
import { CALL_BODY_BYTES_MAX, CALL_BYTES_MAX, type SessionAnswer, type SessionCall } from "./call.ts";
import type { SessionNamespace } from "./namespace.ts";

/** One stateful session of an app. */
export interface SessionTarget {
  /** Its name in `defineApp({ sessions })`. */
  readonly class: string;
  readonly id: string;
}

/** Who carries calls: the isolate's way to its site, for one request. */
export interface SessionCaller {
  /** The site where this runs. */
  readonly site: string;
  call(target: SessionTarget, call: SessionCall): Promise<SessionAnswer>;
  /** A response that hands the WebSocket of the request over, whose handler returns it; absent where there is none. */
  attach?(target: SessionTarget): Response;
  /** A new id's random part. */
  draw(): string;
}

/** What a stateful session, or the way to it, answered with instead of a value. */
export class SessionCallError extends Error {
  override readonly name = "SessionCallError";
  constructor(readonly code: string, message: string) {
    super(message);
  }

  /** Uncaught, it is the platform's problem also in Hono (errors.ts, E2). */
  getResponse(): never {
    throw this;
  }
}

/** Ids of stateful sessions, in UTF-8: they are parts of keys, of paths and of log lines. */
export const SESSION_ID_BYTES_MAX = 200;
const utf8 = new TextEncoder();

/** Why a text is no id of a stateful session; null where it is one. */
export function sessionIdProblem(id: unknown): string | null {
  if (typeof id !== "string") return `an id is a text, not ${id === null ? "null" : typeof id}`;
  const bytes = id.length > SESSION_ID_BYTES_MAX ? id.length : utf8.encode(id).length;
  if (bytes === 0 || bytes > SESSION_ID_BYTES_MAX) {
    return `an id has 1 to ${SESSION_ID_BYTES_MAX} bytes of UTF-8, this one has ${bytes}`;
  }
  return id.isWellFormed() ? null : "an id is well-formed Unicode, this one has half a pair of surrogates";
}

/** `env.sessions.NAME` of one request. @param takesMessages whether its class has `onMessage`. */
export function namespaceOf(
  name: string,
  caller: SessionCaller,
  takesMessages = false,
): SessionNamespace<object> {
  return Object.freeze({
    get: (id: string) => {
      const problem = sessionIdProblem(id);
      if (problem !== null) throw new KvTypeError("session_id_invalid", `sessions.${name}.get: ${problem}`);
      return stubOf({ class: name, id }, caller, takesMessages);
    },
    create: () => stubOf({ class: name, id: `${caller.site}.${caller.draw()}` }, caller, takesMessages),
  });
}

/** Asked for by whoever prints, compares, awaits or serialises an object (S2). */
const NOT_CALLED: ReadonlySet<string> = new Set(["then", "toJSON", "constructor", "valueOf", "toString"]);

function stubOf(
  target: SessionTarget,
  caller: SessionCaller,
  takesMessages: boolean,
): ReturnType<SessionNamespace<object>["get"]> {
  const own = {
    id: target.id,
    fetch: async (input: Request | URL | string, init?: RequestInit) =>
      await fetchFrom(target, caller, new Request(input, init), takesMessages),
  };
  return new Proxy(Object.freeze(own), {
    get: (known, member) => {
      if (typeof member === "symbol" || NOT_CALLED.has(member)) return undefined;
      if (Object.hasOwn(known, member)) return Reflect.get(known, member);
      return (...args: unknown[]) => callMethod(target, caller, member, args);
    },
  }) as ReturnType<SessionNamespace<object>["get"]>;
}

async function callMethod(
  target: SessionTarget,
  caller: SessionCaller,
  method: string,
  args: readonly unknown[],
): Promise<unknown> {
  const answer = await caller.call(target, { kind: "rpc", method, args: encodeValue(args) });
  if (answer.kind === "value") return decodeValue(answer.value, CALL_BYTES_MAX);
  throw failureOf(target, answer);
}

async function fetchFrom(
  target: SessionTarget,
  caller: SessionCaller,
  request: Request,
  takesMessages: boolean,
): Promise<Response> {
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket") {
    return attachTo(target, caller, takesMessages);
  }
  const answer = await caller.call(target, {
    kind: "fetch",
    method: request.method,
    url: request.url,
    headers: [...request.headers],
    body: request.body === null ? null : await wholeBody(request.body),
  });
  if (answer.kind !== "response") throw failureOf(target, answer);
  const { status, statusText, headers } = answer;
  const body = answer.body as Uint8Array<ArrayBuffer> | null;
  return new Response(NO_BODY.has(status) ? null : body, {
    status,
    statusText,
    headers: [...headers] as [string, string][],
  });
}

/** S3 */
function attachTo(target: SessionTarget, caller: SessionCaller, takesMessages: boolean): Response {
  const name = `sessions.${target.class}.get(${JSON.stringify(target.id)}).fetch`;
  if (!takesMessages) {
    throw new SessionCallError(
      "not_available",
      `${name}: a WebSocket goes to a class with onMessage, and ${target.class} has none`,
    );
  }
  if (caller.attach === undefined) {
    throw new SessionCallError(
      "not_available",
      `${name}: a WebSocket is handed over by the function that it came to, not by a stateful session`,
    );
  }
  return caller.attach(target);
}

/** Statuses whose Response refuses a body. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

function failureOf(target: SessionTarget, answer: SessionAnswer): SessionCallError {
  if (answer.kind === "error") return new SessionCallError(answer.code, answer.message);
  return new SessionCallError(
    "app_error",
    `the stateful session ${target.class} ${target.id} gave ${
      answer.kind === "response" ? "a response to a method call" : "a value to a request"
    }`,
  );
}

/** S1 */
async function wholeBody(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > CALL_BODY_BYTES_MAX) {
      throw new SessionCallError(
        "limit_body",
        `a request to a stateful session has a body of at most ${CALL_BODY_BYTES_MAX} bytes; this one has more`,
      );
    }
    chunks.push(chunk);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
