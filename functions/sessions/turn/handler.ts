/**
 * Handlers: what an event calls in a stateful session's object, and what becomes of that call.
 *
 * HD1  An RPC reaches methods of the app's class only: members of the base class and of Object, and the handlers of
 *      events, are not callable.
 * HD2  What a handler returns is awaited whole, a response's body too: its end is the end of the handler.
 */
import {
  CALL_BODY_BYTES_MAX,
  CALL_BYTES_MAX,
  decodeCall,
  encodeAnswer,
  encodeReturned,
  type SessionCall,
} from "../../calls/call.ts";
import { AppError, codeOf } from "../../vocabulary/errors.ts";
import { decodeValue } from "../../values/value.ts";
import { withFixedBoundary } from "./form_boundary.ts";
import { methodOf } from "../../class/session_methods.ts";
import type { SessionPeer } from "../../class/session_slot.ts";
import type { Subject } from "../../class/subject.ts";
import type { TurnInput } from "./turn.ts";

/** An object of a Session class, with the members that the executor calls. */
export interface SessionObject {
  onOpen?(from: SessionPeer): unknown;
  onMessage?(message: string | Uint8Array, from: SessionPeer): unknown;
  onClose?(from: SessionPeer): unknown;
  onTimer?(name: string): unknown;
  fetch?(request: Request): unknown;
  /** Fills the fields from a state of an older shape (migration.ts). */
  migrate?(old: Readonly<Record<string, unknown>>, shape: number): unknown;
}

/** A handler that runs. */
export interface Handler {
  /** Name of the handler as people call it: `onTimer("idle")`. */
  name: string;
  /** Subject of the handler: the request, peer or timer that it is for. */
  readonly subject: Subject;
  readonly input: Handled;
  /** Id of the request that the handler answers; null: it answers none. */
  request: string | null;
  /** Names of the stateful sessions that wait for the handler. */
  chain: readonly string[];
}

/** Inputs that begin a handler. */
export type Handled = Extract<
  TurnInput,
  { readonly kind: "request" | "attach" | "message" | "detach" | "timer" }
>;

/** The program whose handlers run, which is told when a handler ends or fails. */
interface Running {
  readonly peers: { asSeen(id: string): SessionPeer };
  ended(handler: Handler, answer: Uint8Array | null): void;
  fail(error: unknown): void;
}

/** Reports whether an input begins a handler. */
export const isHandled = (input: TurnInput): input is Handled =>
  input.kind === "request" || input.kind === "attach" || input.kind === "message" ||
  input.kind === "detach" ||
  input.kind === "timer";

/** Begins a handler: runs it up to its first wait. */
export function begun(object: SessionObject, handler: Handler, running: Running): void {
  const { input } = handler;
  const { peers } = running;
  switch (input.kind) {
    case "attach":
      handler.name = "onOpen";
      return settle(() => object.onOpen?.(peers.asSeen(input.peer.id)), nothing, handler, running);
    case "message":
      handler.name = "onMessage";
      return settle(
        () => object.onMessage?.(input.message, peers.asSeen(input.peer)),
        nothing,
        handler,
        running,
      );
    case "detach":
      handler.name = "onClose";
      return settle(() => object.onClose?.(peers.asSeen(input.peer)), nothing, handler, running);
    case "timer":
      handler.name = `onTimer(${JSON.stringify(input.name)})`;
      return settle(() => object.onTimer?.(input.name), nothing, handler, running);
    case "request":
      handler.request = input.request;
      handler.chain = input.chain;
      return begunRequest(object, input.bytes, handler, running);
  }
}

function begunRequest(object: SessionObject, bytes: Uint8Array, handler: Handler, running: Running): void {
  let call: SessionCall;
  try {
    call = decodeCall(bytes);
  } catch (error) {
    return running.fail(error);
  }
  if (call.kind === "fetch") {
    const { fetch } = object;
    handler.name = "fetch";
    if (typeof fetch !== "function") {
      const answer = errorAnswer("not_available", "the class of this stateful session has no fetch");
      return running.ended(handler, answer);
    }
    const work = async () => await responseAnswer(await fetch.call(object, requestOf(call)));
    return settle(work, asIs, handler, running);
  }
  const { method, args } = call;
  handler.name = method;
  const own = methodOf(object, method);
  if (own === undefined) { // HD1
    const answer = errorAnswer("not_available", `this stateful session has no method ${method}`);
    return running.ended(handler, answer);
  }
  settle(
    () => {
      const given = decodeValue(args, CALL_BYTES_MAX);
      // The arguments may be no list: a caller outside may encode anything.
      return Reflect.apply(own, object, Array.isArray(given) ? given : Array.from(given as unknown[]));
    },
    encodeReturned,
    handler,
    running,
  );
}

/** Function that makes a handler's answer of the value that the handler returned. */
type Answering = (value: unknown) => Uint8Array | null;
const nothing: Answering = () => null;
const asIs: Answering = (value) => value as Uint8Array | null;

/** Runs `work` to its end, and ends the handler with the answer made of its value, or fails it. */
function settle(work: () => unknown, answer: Answering, handler: Handler, running: Running): void {
  try {
    const value = work();
    if (!isThenable(value)) return done(value, answer, handler, running);
    Promise.resolve(value).then(
      (value) => done(value, answer, handler, running),
      (error) => running.fail(error),
    );
  } catch (error) {
    running.fail(error);
  }
}

function done(value: unknown, answer: Answering, handler: Handler, running: Running): void {
  try {
    running.ended(handler, answer(value));
  } catch (error) {
    running.fail(error);
  }
}

const isThenable = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";

/** Methods whose requests have no body. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

function requestOf({ method, url, headers, body }: Extract<SessionCall, { kind: "fetch" }>): Request {
  return new Request(url, {
    method,
    headers: headers as [string, string][],
    body: BODILESS.has(method) ? null : body as Uint8Array<ArrayBuffer> | null,
  });
}

/** Returns the answer for a handler's response, its body read whole (HD2). */
async function responseAnswer(response: unknown): Promise<Uint8Array> {
  if (!(response instanceof Response)) {
    throw new TypeError(`fetch() answers a Response, not ${response === null ? "null" : typeof response}`);
  }
  const body = response.body === null ? null : new Uint8Array(await response.arrayBuffer());
  if (body !== null && body.length > CALL_BODY_BYTES_MAX) {
    throw new AppError(
      "limit_body",
      `a response of a stateful session has at most ${CALL_BODY_BYTES_MAX} bytes; this one has ${body.length}`,
    );
  }
  const { status, statusText } = response;
  return encodeAnswer({
    kind: "response",
    status,
    statusText,
    ...withFixedBoundary([...response.headers], body),
  });
}

/** Returns the bytes of the answer to a request that failed. */
export const errorAnswer = (code: string, message: string): Uint8Array =>
  encodeAnswer({ kind: "error", code, message });

/** Limits to which messages and codes are cut: messages are read by people, and a code is one word. */
const MESSAGE_CHARS_MAX = 1000;
const CODE_CHARS_MAX = 100;

/** Returns code and message of a thrown value, which may be anything, and may itself throw when it is looked at. */
export function thrown(error: unknown): { readonly code: string; readonly message: string } {
  try {
    const text = String(error instanceof Error ? error.message : error);
    const code = codeOf(error) ?? "app_error";
    return {
      code: code.slice(0, CODE_CHARS_MAX).toWellFormed(),
      message: text.slice(0, MESSAGE_CHARS_MAX).toWellFormed(),
    };
  } catch {
    return { code: "app_error", message: "something that has no text was thrown" };
  }
}

/** Returns the text of a thrown value for a log, with its stack where there is one. */
export function stackText(error: unknown): string {
  try {
    return String(error instanceof Error ? error.stack ?? error.message : error);
  } catch {
    return thrown(error).message;
  }
}
